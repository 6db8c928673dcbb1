// Small symmetric matrices, and Lanczos' method with them, part of kernels_isa.cpp and under its rule: see kernels.hpp. All
// sizes are padded to multiples of eight, with zeros.
#pragma once

#include "eight.hpp"
#include "row_losses.hpp"

namespace {

// A symmetric matrix, all of it stored in columns `stride` apart, times a vector. Only what is near and below the diagonal is
// read, and every number used twice.
void symmetric_product(Size size, const double* matrix, Size stride, const double* v, double* out) {
    for (Size i = 0; i < size; ++i) out[i] = 0;
    for (Size j = 0; j < size; j += 8) {
        const double *a = matrix + j * stride, *b = a + stride, *c = b + stride, *d = c + stride;
        const double *e = d + stride, *f = e + stride, *g = f + stride, *h = g + stride;
        const double va = v[j], vb = v[j + 1], vc = v[j + 2], vd = v[j + 3];
        const double ve = v[j + 4], vf = v[j + 5], vg = v[j + 6], vh = v[j + 7];
        double sa = 0, sb = 0, sc = 0, sd = 0, se = 0, sf = 0, sg = 0, sh = 0;
        const auto sum = [&](Size i) {
            return ((a[i] * va + b[i] * vb) + (c[i] * vc + d[i] * vd)) +
                   ((e[i] * ve + f[i] * vf) + (g[i] * vg + h[i] * vh));
        };
#pragma omp simd
        for (Size i = j; i < j + 8; ++i) out[i] += sum(i);
#pragma omp simd reduction(+ : sa, sb, sc, sd, se, sf, sg, sh)
        for (Size i = j + 8; i < size; ++i) {
            out[i] += sum(i);
            sa += a[i] * v[i], sb += b[i] * v[i], sc += c[i] * v[i], sd += d[i] * v[i];
            se += e[i] * v[i], sf += f[i] * v[i], sg += g[i] * v[i], sh += h[i] * v[i];
        }
        out[j] += sa, out[j + 1] += sb, out[j + 2] += sc, out[j + 3] += sd;
        out[j + 4] += se, out[j + 5] += sf, out[j + 6] += sg, out[j + 7] += sh;
    }
}

// To such a matrix, the square of a vector, times a factor.
void change_by_square(Size size, double factor, const double* v, double* matrix, Size stride) {
    for (Size j = 0; j < size; ++j) {
        const double share = factor * v[j];
        double* row = matrix + j * stride;
#pragma omp simd
        for (Size i = 0; i < size; ++i) row[i] += share * v[i];
    }
}

// Of some lines of eight numbers the sum of rows, each times its share, is taken off.
template <int lines>
void take_off_lines(const double* rows, Size stride, Size k, const double* shares, double* from) {
    Eight sum[lines];
    for (int l = 0; l < lines; ++l) clear(sum[l]);
    for (Size c = 0; c < k; ++c)
        for (int l = 0; l < lines; ++l) sum[l].add(shares[c], reinterpret_cast<const Eight*>(rows + c * stride)[l]);
    for (int l = 0; l < lines; ++l) reinterpret_cast<Eight*>(from)[l] -= sum[l];
}

void take_off(const double* rows, Size stride, Size k, const double* shares, double* from) {
    Size i = 0;
    for (; i + 32 <= stride; i += 32) take_off_lines<4>(rows + i, stride, k, shares, from + i);
    for (; i + 16 <= stride; i += 16) take_off_lines<2>(rows + i, stride, k, shares, from + i);
    for (; i < stride; i += 8) take_off_lines<1>(rows + i, stride, k, shares, from + i);
}

double dot(const double* x, const double* y, Size n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Size i = 0; i < n; ++i) sum += x[i] * y[i];
    return sum;
}

// Dots of rows with one vector, four at a time.
void row_dots(const double* rows, Size stride, Size k, const double* x, double* out) {
    Size c = 0;
    for (; c + 4 <= k; c += 4) {
        const double *a = rows + c * stride, *b = a + stride, *d = b + stride, *e = d + stride;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
        for (Size i = 0; i < stride; ++i) s0 += a[i] * x[i], s1 += b[i] * x[i], s2 += d[i] * x[i], s3 += e[i] * x[i];
        out[c] = s0, out[c + 1] = s1, out[c + 2] = s2, out[c + 3] = s3;
    }
    for (; c < k; ++c) out[c] = dot(rows + c * stride, x, stride);
}

// Direction k of a basis, of what was left (of length `before`) when direction k - 1 was; then what is left of its product with
// the matrix, of which `corner` is told, and its length.
double next_direction(Size size, const double* matrix, Size stride, double* basis, Size k, double before, double* left,
                      double* corner) {
    double *direction = basis + k * size, shares[bregpath::kMostDirections];
    const double scale = 1.0 / before;
#pragma omp simd
    for (Size i = 0; i < size; ++i) direction[i] = left[i] * scale;
    symmetric_product(size, matrix, stride, direction, left);
    shares[0] = before, shares[1] = *corner = dot(direction, left, size);
    // What is large first, so that once more is enough for what rounding leaves of all others.
    if (k > 0)
        take_off(direction - size, size, 2, shares, left);
    else
        take_off(direction, size, 1, shares + 1, left);
    row_dots(basis, size, k + 1, left, shares);
    take_off(basis, size, k + 1, shares, left);
    return sqrt(dot(left, left, size));
}

// Several sums of rows, a line of eight numbers of all rows after the other.
void combine_rows(const double* rows, Size size, Size k, const double* shares, Size apart, Size sums, double* out) {
    for (Size i = 0; i < size; i += 8) {
        for (Size l = 0; l < sums; l += 3) {
            Eight a{}, b{}, c{};
            const double *of_a = shares + l * apart, *of_b = l + 1 < sums ? of_a + apart : of_a,
                         *of_c = l + 2 < sums ? of_b + apart : of_a;
            for (Size j = 0; j < k; ++j) {
                const Eight& row = *reinterpret_cast<const Eight*>(rows + j * size + i);
                a.add(of_a[j], row), b.add(of_b[j], row), c.add(of_c[j], row);
            }
            *reinterpret_cast<Eight*>(out + l * size + i) = a;
            if (l + 1 < sums) *reinterpret_cast<Eight*>(out + (l + 1) * size + i) = b;
            if (l + 2 < sums) *reinterpret_cast<Eight*>(out + (l + 2) * size + i) = c;
        }
    }
}

// The integral of exp(-x), x = rate tau, and that of the integral: for small x by the series of the latter, of which the other
// follows without a difference that cancels.
void decay(Size k, const double* rates, double tau, double* change, double* past) {
    constexpr double small = 0.5;
#pragma omp simd
    for (Size i = 0; i < k; ++i) {
        const double x = rates[i] * tau, y = x < small ? x : 0.0, far = x < small ? 1.0 : x;
        const double series = polynomial(-y, 1.1470745597729725e-11, 1.6059043836821613e-10, 2.08767569878681e-9,
                                         2.505210838544172e-8, 2.755731922398589e-7, 2.7557319223985893e-6,
                                         2.48015873015873e-5, 1.984126984126984e-4, 1.388888888888889e-3,
                                         8.333333333333333e-3, 4.1666666666666664e-2, 0.16666666666666666, 0.5);
        const double fall = 1 - fast_exp(-x), share = 1 / far;
        const double once = x < small ? 1 - x * series : fall * share;
        change[i] = tau * once;
        past[i] = tau * tau * (x < small ? series : (x - fall) * (share * share));
    }
}

// Where coordinates at rest are after a time, and how fast: less what k modes of the others do to them directly, and by the mean.
void coast(Size m, double time, const double* z, const double* slope, Size k, const double* images, const double* change,
           const double* past, const double* mean, double change_of_mean, double past_of_mean, double* z_then, double* slope_then) {
#pragma omp simd
    for (Size j = 0; j < m; ++j) {
        slope_then[j] = slope[j] - change_of_mean * mean[j];
        z_then[j] = z[j] + time * slope[j] - past_of_mean * mean[j];
    }
    for (Size i = 0; i < k; ++i) {
        const double once = change[i], twice = past[i], *image = images + i * m;
#pragma omp simd
        for (Size j = 0; j < m; ++j) slope_then[j] -= once * image[j], z_then[j] -= twice * image[j];
    }
}

// By how much the farthest coordinate is beyond its bounds.
double farthest(Size m, const double* z, const double* low, const double* high) {
    double most = z[0] - high[0];
#pragma omp simd reduction(max : most)
    for (Size j = 0; j < m; ++j) {
        const double above = z[j] - high[j], below = low[j] - z[j], beyond = above > below ? above : below;
        most = most > beyond ? most : beyond;
    }
    return most;
}

}  // namespace

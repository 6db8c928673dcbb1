// Sums over rows of products of dense columns, part of kernels_isa.cpp and under its rule: see kernels.hpp.
#pragma once

#include "eight.hpp"
#include "row_losses.hpp"

namespace {

using bregpath::Column;
using bregpath::Columns;

double total(const double* r, Size n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (Size i = 0; i < n; ++i) sum += r[i];
    return sum;
}

// Dots of four columns with four vectors on a run of rows: every number that is read is used four times.
void add_tile(const Column* x, const double* const* u, Size i0, Size m, double* out, Size stride) {
    const double *x0 = x[0].values + i0, *x1 = x[1].values + i0, *x2 = x[2].values + i0, *x3 = x[3].values + i0;
    const double *u0 = u[0] + i0, *u1 = u[1] + i0, *u2 = u[2] + i0, *u3 = u[3] + i0;
    double a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
    double c0 = 0, c1 = 0, c2 = 0, c3 = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0;
#pragma omp simd reduction(+ : a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3)
    for (Size i = 0; i < m; ++i) {
        a0 += x0[i] * u0[i], a1 += x1[i] * u0[i], a2 += x2[i] * u0[i], a3 += x3[i] * u0[i];
        b0 += x0[i] * u1[i], b1 += x1[i] * u1[i], b2 += x2[i] * u1[i], b3 += x3[i] * u1[i];
        c0 += x0[i] * u2[i], c1 += x1[i] * u2[i], c2 += x2[i] * u2[i], c3 += x3[i] * u2[i];
        d0 += x0[i] * u3[i], d1 += x1[i] * u3[i], d2 += x2[i] * u3[i], d3 += x3[i] * u3[i];
    }
    const double sums[4][4] = {{a0, a1, a2, a3}, {b0, b1, b2, b3}, {c0, c1, c2, c3}, {d0, d1, d2, d3}};
    for (Size l = 0; l < 4; ++l)
        for (Size c = 0; c < 4; ++c) out[l * stride + c] += sums[l][c];
}

// Vectors that are to meet the same columns lie in lines: eight of them, row by row. A number of a column then meets a line at a
// time, so that no sum waits for another, and none has to be added up in the end. So many columns and lines have sums in registers:
constexpr int kStripColumns = kWide == 8 ? 12 : kWide == 4 ? 6 : 2;
constexpr int kStripLines = kWide == 8 ? 2 : 1;

// Dots of a strip of columns with lines that are `apart` from each other, on a run of rows.
template <int lines>
void add_strip(const Column* columns, Size count, Size i0, Size m, const Eight* u, Size apart, double* out, Size stride) {
    const double* x[kStripColumns];  // what is missing is the last one again, whose sums are left out
    for (int c = 0; c < kStripColumns; ++c) x[c] = columns[c < count ? c : count - 1].values + i0;
    Eight sums[kStripColumns][lines] = {};
    for (Size i = 0; i < m; ++i)
        for (int c = 0; c < kStripColumns; ++c)
            for (int e = 0; e < lines; ++e) sums[c][e].add(x[c][i], u[e * apart + i]);
    for (Size c = 0; c < count && c < kStripColumns; ++c)
        for (Size l = 0; l < 8 * lines; ++l) out[l * stride + c] += reinterpret_cast<const double*>(sums[c])[l];
}

void many_dots(const Columns& x, const double* const* u, Size q, double* run, Size rows, double* out) {
    for (Size l = 0; l < q * x.k; ++l) out[l] = 0;
    const Eight* lines = reinterpret_cast<const Eight*>(run);
    for (Size i0 = 0; i0 < x.n; i0 += rows) {
        const Size m = x.n - i0 < rows ? x.n - i0 : rows;
        for (Size l = 0; l < q; ++l)
            for (Size i = 0; i < m; ++i) run[(l / 8 * rows + i) * 8 + l % 8] = u[l][i0 + i];
        for (Size c = 0; c < x.k; c += kStripColumns) {
            Size e = 0;
            for (; e + kStripLines <= q / 8; e += kStripLines)
                add_strip<kStripLines>(x.at + c, x.k - c, i0, m, lines + e * rows, rows, out + 8 * e * x.k + c, x.k);
            for (; e < q / 8; ++e) add_strip<1>(x.at + c, x.k - c, i0, m, lines + e * rows, rows, out + 8 * e * x.k + c, x.k);
        }
    }
}

// Columns whose sums with some lines stay in registers.
constexpr int kTall = kWide == 8 ? 8 : kWide == 4 ? 4 : 2;

// A run of rows of eight columns, standardised and weighted, row by row.
void weigh_rows(const Column* x, Size i0, Size m, const double* root, double* to) {
    const double* from[8];
    double center[8], factor[8];
    for (int c = 0; c < 8; ++c) from[c] = x[c].values + i0, center[c] = x[c].center, factor[c] = 1 / x[c].scale;
    for (Size i = 0; i < m; ++i)
        for (int c = 0; c < 8; ++c) to[8 * i + c] = (from[c][i] - center[c]) * (factor[c] * root[i0 + i]);
}

// Dots of some columns with lines that are `apart` from each other, all of which lie row by row, on a run of rows.
template <int lines>
void add_square(const double* u, const Eight* x, Size m, Size apart, double* out, Size stride) {
    Eight sums[kTall][lines] = {};
    for (Size i = 0; i < m; ++i)
        for (int l = 0; l < kTall; ++l)
            for (int e = 0; e < lines; ++e) sums[l][e].add(u[8 * i + l], x[e * apart + i]);
    for (int l = 0; l < kTall; ++l)
        for (int e = 0; e < lines; ++e) reinterpret_cast<Eight*>(out + l * stride)[e] += sums[l][e];
}

template <int lines>
void add_squares(const double* run, Size c, Size rows, Size m, double* out, Size stride) {
    const Eight* x = reinterpret_cast<const Eight*>(run + c * rows);
    for (Size l = 0; l < c + 8 * lines; l += kTall)
        add_square<lines>(run + l / 8 * 8 * rows + l % 8, x, m, rows, out + l * stride + c, stride);
}

void gram(const Columns& x, const double* root, double* run, Size rows, double* out) {
    for (Size i = 0; i < x.n; i += rows) {
        const Size m = x.n - i < rows ? x.n - i : rows;
        for (Size c = 0; c < x.k; c += 8) weigh_rows(x.at + c, i, m, root, run + c * rows);
        Size c = 0;
        for (; c + 8 * kStripLines <= x.k; c += 8 * kStripLines) add_squares<kStripLines>(run, c, rows, m, out, x.k);
        for (; c < x.k; c += 8) add_squares<1>(run, c, rows, m, out, x.k);
    }
}

void lessen(Size p, const double* whole, const double* lost, double share, double mine, const double* moved, double factor,
            const double* factors, double* out) {
    const double more = 1 / share;
#pragma omp simd
    for (Size j = 0; j < p; ++j) out[j] = ((whole[j] - lost[j]) * more - mine * moved[j]) * (factor * factors[j]);
}

void spread(Size n, const double* x, const double* w, double* mean, double* variance) {
    double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (Size i = 0; i < n; ++i) sum += w[i] * x[i];
#pragma omp simd reduction(+ : squares)
    for (Size i = 0; i < n; ++i) squares += w[i] * ((x[i] - sum) * (x[i] - sum));
    *mean = sum, *variance = squares;
}

}  // namespace

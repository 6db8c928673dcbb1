// Sums over rows of products of dense columns, part of kernels_isa.cpp and under its rule: see kernels.hpp.
#pragma once

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

// A run of rows of the columns, standardised and weighted, side by side: what tiles are made of stays in the cache.
void weigh_rows(const Columns& x, Size i0, Size m, const double* root, double* run, Size rows) {
    for (Size c = 0; c < x.k; ++c) {
        const double *from = x.at[c].values + i0, *by = root + i0, center = x.at[c].center, factor = 1 / x.at[c].scale;
        double* to = run + c * rows;
#pragma omp simd
        for (Size i = 0; i < m; ++i) to[i] = (from[i] - center) * factor * by[i];
    }
}

void gram(const Columns& x, const double* root, double* run, Size rows, double* out) {
    for (Size i = 0; i < x.n; i += rows) {
        const Size m = x.n - i < rows ? x.n - i : rows;
        weigh_rows(x, i, m, root, run, rows);
        for (Size c = 0; c < x.k; c += 4)
            for (Size l = 0; l <= c; l += 4) {
                const Column four[4] = {{run + c * rows}, {run + (c + 1) * rows}, {run + (c + 2) * rows}, {run + (c + 3) * rows}};
                const double* u[4] = {run + l * rows, run + (l + 1) * rows, run + (l + 2) * rows, run + (l + 3) * rows};
                add_tile(four, u, 0, m, out + l * x.k + c, x.k);
            }
    }
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

// Losses on runs of rows, part of kernels_isa.cpp and under its rule: see kernels.hpp.
#pragma once

#include <cstring>
#include <math.h>  // ::log(double) is a function of the C library, never an inline copy

#include "kernels.hpp"
#include "scalars.hpp"

namespace {

using bregpath::Data;
using bregpath::Loss;
using bregpath::Size;

constexpr Size kMaxRows = 1024;  // of a run: what a loss keeps of each row fits on the stack

inline void clear(double* x, Size size) {
    if (size > 0) std::memset(x, 0, sizeof(double) * size);  // without columns there may be no array
}

// eta = alpha + offset on rows i0 .. i0 + m, of arrays that begin at row 0.
void start_rows(const double* offset, Size q, Size n, Size i0, Size m, const double* alpha, double* eta) {
    for (Size l = 0; l < q; ++l) {
        double* e = eta + l * n + i0;
        const double a = alpha[l];
        const double* o = offset ? offset + l * n + i0 : nullptr;
        for (Size i = 0; i < m; ++i) e[i] = o ? a + o[i] : a;
    }
}

// --- losses of one output: of a row with response y, before its weight ---------------------------------------

struct Row {
    double value, residual;
};

struct Gaussian {
    static Row at(double y, double eta, double) { return {0.5 * (eta - y) * (eta - y), eta - y}; }
    static double curvature(double, double, double) { return 1.0; }
};

struct Logistic {
    // With the margin y eta, and e = exp(-|margin|).
    static double value(double margin, double e) { return (margin < 0 ? -margin : 0.0) + fast_log1p(e); }
    static double residual(double y, double margin, double e) { return -y * (margin > 0 ? e : 1.0) / (1.0 + e); }
    static Row at(double y, double eta, double) {
        const double margin = y * eta, e = fast_exp(-absolute(margin));
        return {value(margin, e), residual(y, margin, e)};
    }
    static double curvature(double, double eta, double) {
        const double e = fast_exp(-absolute(eta));
        return e / ((1.0 + e) * (1.0 + e));
    }
};

struct Poisson {
    static Row at(double y, double eta, double) {
        const double rate = fast_exp(eta);
        return {rate - y * eta, rate - y};
    }
    static double curvature(double, double eta, double) { return fast_exp(eta); }
};

struct Huber {
    static Row at(double y, double eta, double threshold) {
        const double u = eta - y, size = absolute(u), inner = size < threshold ? size : threshold;
        return {inner * (size - 0.5 * inner), u < 0 ? -inner : inner};
    }
    static double curvature(double y, double eta, double threshold) {
        return absolute(eta - y) <= threshold ? 1.0 : 0.0;
    }
};

// Minimum probability flow of one spin.
struct IsingFlow {
    static Row at(double y, double eta, double) {
        const double e = fast_exp(-0.5 * y * eta);
        return {e, -0.5 * y * e};
    }
    static double curvature(double y, double eta, double) { return 0.25 * fast_exp(-0.5 * y * eta); }
};

// --- value and residual of rows i0 .. i0 + m; eta and r point at row i0 of the first output -------------------

template <class Formulas, bool want_value>
double rows_of(const Data& d, Size i0, Size m, const double* eta, double* r) {
    const double *y = d.y + i0, *w = d.w + i0, threshold = d.threshold;
    double value = 0.0;
#pragma omp simd reduction(+ : value)
    for (Size i = 0; i < m; ++i) {
        const Row row = Formulas::at(y[i], eta[i], threshold);
        r[i] = w[i] * row.residual;
        if constexpr (want_value) value += w[i] * row.value;
    }
    return value;
}

// The same, with the exponentials of a run of rows before their logarithms: in one loop both are a chain so long that
// few rows are under way at a time.
template <>
double rows_of<Logistic, true>(const Data& d, Size i0, Size m, const double* eta, double* r) {
    const double *y = d.y + i0, *w = d.w + i0;
    double value = 0.0, e[kMaxRows];
#pragma omp simd
    for (Size i = 0; i < m; ++i) {
        const double margin = y[i] * eta[i];
        e[i] = fast_exp(-absolute(margin));
        r[i] = w[i] * Logistic::residual(y[i], margin, e[i]);
    }
#pragma omp simd reduction(+ : value)
    for (Size i = 0; i < m; ++i) value += w[i] * Logistic::value(y[i] * eta[i], e[i]);
    return value;
}

// Softmax over outputs; eta and r have stride n between outputs, the probabilities are left in r.
void softmax_rows(Size q, Size m, Size stride, const double* eta, double* top, double* sum, double* r) {
    for (Size i = 0; i < m; ++i) top[i] = eta[i], sum[i] = 0.0;
    for (Size l = 1; l < q; ++l) {
        const double* e = eta + l * stride;
#pragma omp simd
        for (Size i = 0; i < m; ++i) top[i] = e[i] > top[i] ? e[i] : top[i];
    }
    for (Size l = 0; l < q; ++l) {
        const double* e = eta + l * stride;
        double* p = r + l * stride;
#pragma omp simd
        for (Size i = 0; i < m; ++i) {
            p[i] = fast_exp(e[i] - top[i]);
            sum[i] += p[i];
        }
    }
    for (Size l = 0; l < q; ++l) {
        double* p = r + l * stride;
#pragma omp simd
        for (Size i = 0; i < m; ++i) p[i] /= sum[i];
    }
}

double multinomial_rows(const Data& d, Size i0, Size m, Size n, const double* eta, double* r, bool want) {
    const double *y = d.y + i0, *w = d.w + i0;
    double top[kMaxRows], sum[kMaxRows];
    softmax_rows(d.q, m, n, eta, top, sum, r);
    double value = 0.0;
    for (Size i = 0; want && i < m; ++i)
        value += w[i] * (top[i] + ::log(sum[i]) - eta[static_cast<Size>(y[i]) * n + i]);
    for (Size l = 0; l < d.q; ++l) {
        double* p = r + l * n;
        const double number = double(l);
#pragma omp simd
        for (Size i = 0; i < m; ++i) p[i] = w[i] * (p[i] - (y[i] == number ? 1.0 : 0.0));
    }
    return value;
}

template <bool want>
double run_of_rows(const Data& d, Size i0, Size m, Size n, const double* eta, double* r) {
    switch (d.loss) {
        case Loss::gaussian: return rows_of<Gaussian, want>(d, i0, m, eta, r);
        case Loss::logistic: return rows_of<Logistic, want>(d, i0, m, eta, r);
        case Loss::poisson: return rows_of<Poisson, want>(d, i0, m, eta, r);
        case Loss::huber: return rows_of<Huber, want>(d, i0, m, eta, r);
        case Loss::multinomial: return multinomial_rows(d, i0, m, n, eta, r, want);
        case Loss::ising_flow: return rows_of<IsingFlow, want>(d, i0, m, eta, r);
        case Loss::user: break;
    }
    return 0.0;
}

// The same for any number of rows; without `want` the value is 0.
double loss_rows(const Data& d, Size i0, Size m, Size n, const double* eta, double* r, bool want) {
    double value = 0.0;
    for (Size i = 0; i < m; i += kMaxRows) {
        const Size run = m - i < kMaxRows ? m - i : kMaxRows;
        value += (want ? run_of_rows<true> : run_of_rows<false>)(d, i0 + i, run, n, eta + i, r + i);
    }
    return value;
}

// --- curvature -----------------------------------------------------------------------------------------------

template <class Formulas>
void curvature_of(const Data& d, Size n, const double* eta, double* h) {
    const double *y = d.y, *w = d.w, threshold = d.threshold;
#pragma omp simd
    for (Size i = 0; i < n; ++i) h[i] = w[i] * Formulas::curvature(y[i], eta[i], threshold);
}

void curvature(const Data& d, Size n, const double* eta, double* h) {
    double top[kMaxRows], sum[kMaxRows];
    switch (d.loss) {
        case Loss::gaussian: return curvature_of<Gaussian>(d, n, eta, h);
        case Loss::logistic: return curvature_of<Logistic>(d, n, eta, h);
        case Loss::poisson: return curvature_of<Poisson>(d, n, eta, h);
        case Loss::huber: return curvature_of<Huber>(d, n, eta, h);
        case Loss::multinomial:
            for (Size i = 0; i < n; i += kMaxRows)
                softmax_rows(d.q, n - i < kMaxRows ? n - i : kMaxRows, n, eta + i, top, sum, h + i);
            return;
        case Loss::ising_flow: return curvature_of<IsingFlow>(d, n, eta, h);
        case Loss::user: return;
    }
}

// u = H u on rows i0 .. i0 + m, of arrays that begin at row 0.
void curve_rows(const Data& d, Size n, Size i0, Size m, const double* h, double* u) {
    if (d.loss != Loss::multinomial) {
        for (Size i = i0; i < i0 + m; ++i) u[i] *= h[i];
        return;
    }
    for (Size i = i0; i < i0 + m; ++i) {
        double mean = 0.0;
        for (Size l = 0; l < d.q; ++l) mean += h[l * n + i] * u[l * n + i];
        for (Size l = 0; l < d.q; ++l) u[l * n + i] = d.w[i] * h[l * n + i] * (u[l * n + i] - mean);
    }
}

}  // namespace

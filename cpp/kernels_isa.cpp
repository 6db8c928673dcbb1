// The kernels, compiled once for each instruction set with -DBREGPATH_ISA=base|v3|v4.
// Only static or extern "C" code here: see the rule in kernels.hpp.
//
// A gradient reads the columns once: rows are taken in blocks small enough that their part of X stays in the cache
// between X beta and X' r.
#include "kernels.hpp"

#include <cstring>

#ifndef BREGPATH_ISA
#define BREGPATH_ISA base
#endif
#define BREGPATH_JOIN_(name, isa) name##_##isa
#define BREGPATH_JOIN(name, isa) BREGPATH_JOIN_(name, isa)
#define BREGPATH_NAME(name) BREGPATH_JOIN(name, BREGPATH_ISA)   // name -> name_v3
#define BREGPATH_TEXT_(isa) #isa
#define BREGPATH_TEXT(isa) BREGPATH_TEXT_(isa)

namespace {

using bregpath::Columns;
using bregpath::Data;
using bregpath::Loss;

constexpr long kBlockNumbers = 32768;  // entries of X per block of rows: 256 kB
constexpr long kMinRows = 64, kMaxRows = 1024;

long rows_per_block(int k) {
    long rows = kBlockNumbers / (k > 0 ? k : 1);
    rows = rows < kMinRows ? kMinRows : rows > kMaxRows ? kMaxRows : rows;
    return rows & ~7L;
}

// --- scalar functions that vectorise: no branches, no library calls ------------------------------------------

// exp by the usual reduction x = k log 2 + r and a Taylor polynomial on |r| <= log(2)/2; 1 ulp or so on
// [-708, 709], clamped outside of it (so exp(1000) is large but finite: callers test the loss, not exp).
inline double fast_exp(double x) {
    x = x < -708.0 ? -708.0 : x;
    x = x > 709.0 ? 709.0 : x;
    constexpr double shifter = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits
    const double shifted = x * 1.4426950408889634 + shifter;
    const double k = shifted - shifter;
    double r = x - k * 6.93147180369123816490e-01;
    r -= k * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    int64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const int64_t exponent = (bits << 52) + (int64_t{1023} << 52);
    double power;
    std::memcpy(&power, &exponent, sizeof power);
    return p * power;
}

// log(1 + u) for 0 <= u <= 1, as 2 atanh(u / (2 + u)).
inline double fast_log1p(double u) {
    const double s = u / (2.0 + u), s2 = s * s;
    double p = 1.0 / 35.0;
    p = p * s2 + 1.0 / 33.0;
    p = p * s2 + 1.0 / 31.0;
    p = p * s2 + 1.0 / 29.0;
    p = p * s2 + 1.0 / 27.0;
    p = p * s2 + 1.0 / 25.0;
    p = p * s2 + 1.0 / 23.0;
    p = p * s2 + 1.0 / 21.0;
    p = p * s2 + 1.0 / 19.0;
    p = p * s2 + 1.0 / 17.0;
    p = p * s2 + 1.0 / 15.0;
    p = p * s2 + 1.0 / 13.0;
    p = p * s2 + 1.0 / 11.0;
    p = p * s2 + 1.0 / 9.0;
    p = p * s2 + 1.0 / 7.0;
    p = p * s2 + 1.0 / 5.0;
    p = p * s2 + 1.0 / 3.0;
    return 2.0 * s * (p * s2 + 1.0);
}

inline double absolute(double x) { return x < 0 ? -x : x; }

// --- losses on a run of rows ---------------------------------------------------------------------------------

double gaussian_rows(const Data& d, long i0, long m, const double* eta, double* r, bool want) {
    const double *y = d.y + i0, *w = d.w + i0;
    double value = 0.0;
#pragma omp simd reduction(+ : value)
    for (long i = 0; i < m; ++i) {
        const double u = eta[i] - y[i];
        r[i] = w[i] * u;
        value += r[i] * u;
    }
    return want ? 0.5 * value : 0.0;
}

double logistic_rows(const Data& d, long i0, long m, const double* eta, double* r, bool want) {
    const double *y = d.y + i0, *w = d.w + i0;
    double value = 0.0;
    if (want) {
#pragma omp simd reduction(+ : value)
        for (long i = 0; i < m; ++i) {
            const double margin = y[i] * eta[i];
            const double e = fast_exp(-absolute(margin));
            r[i] = -w[i] * y[i] * (margin > 0 ? e : 1.0) / (1.0 + e);
            value += w[i] * ((margin < 0 ? -margin : 0.0) + fast_log1p(e));
        }
        return value;
    }
#pragma omp simd
    for (long i = 0; i < m; ++i) {
        const double margin = y[i] * eta[i];
        const double e = fast_exp(-absolute(margin));
        r[i] = -w[i] * y[i] * (margin > 0 ? e : 1.0) / (1.0 + e);
    }
    return value;
}

double poisson_rows(const Data& d, long i0, long m, const double* eta, double* r, bool) {
    const double *y = d.y + i0, *w = d.w + i0;
    double value = 0.0;
#pragma omp simd reduction(+ : value)
    for (long i = 0; i < m; ++i) {
        const double rate = fast_exp(eta[i]);
        r[i] = w[i] * (rate - y[i]);
        value += w[i] * (rate - y[i] * eta[i]);
    }
    return value;
}

double huber_rows(const Data& d, long i0, long m, const double* eta, double* r, bool) {
    const double *y = d.y + i0, *w = d.w + i0;
    const double bend = d.parameter;
    double value = 0.0;
#pragma omp simd reduction(+ : value)
    for (long i = 0; i < m; ++i) {
        const double u = eta[i] - y[i], size = absolute(u);
        const double inner = size < bend ? size : bend;
        r[i] = w[i] * (u < 0 ? -inner : inner);
        value += w[i] * inner * (size - 0.5 * inner);
    }
    return value;
}

// Minimum probability flow of one spin: exp(-y eta / 2).
double flow_rows(const Data& d, long i0, long m, const double* eta, double* r, bool want) {
    const double *y = d.y + i0, *w = d.w + i0;
    double value = 0.0;
#pragma omp simd reduction(+ : value)
    for (long i = 0; i < m; ++i) {
        const double e = w[i] * fast_exp(-0.5 * y[i] * eta[i]);
        r[i] = -0.5 * y[i] * e;
        value += e;
    }
    return want ? value : 0.0;
}

// Softmax over outputs; eta and r have stride n between outputs, the probabilities are left in r.
void softmax_rows(int q, long m, long stride, const double* eta, double* top, double* sum, double* r) {
    for (long i = 0; i < m; ++i) top[i] = eta[i], sum[i] = 0.0;
    for (int l = 1; l < q; ++l) {
        const double* e = eta + l * stride;
#pragma omp simd
        for (long i = 0; i < m; ++i) top[i] = e[i] > top[i] ? e[i] : top[i];
    }
    for (int l = 0; l < q; ++l) {
        const double* e = eta + l * stride;
        double* p = r + l * stride;
#pragma omp simd
        for (long i = 0; i < m; ++i) {
            p[i] = fast_exp(e[i] - top[i]);
            sum[i] += p[i];
        }
    }
    for (int l = 0; l < q; ++l) {
        double* p = r + l * stride;
#pragma omp simd
        for (long i = 0; i < m; ++i) p[i] /= sum[i];
    }
}

double multinomial_rows(const Data& d, long i0, long m, long n, const double* eta, double* r, bool want) {
    const double *y = d.y + i0, *w = d.w + i0;
    double top[kMaxRows], sum[kMaxRows];
    softmax_rows(d.q, m, n, eta, top, sum, r);
    double value = 0.0;
    for (long i = 0; want && i < m; ++i)
        value += w[i] * (top[i] + __builtin_log(sum[i]) - eta[static_cast<long>(y[i]) * n + i]);
    for (int l = 0; l < d.q; ++l) {
        double* p = r + l * n;
#pragma omp simd
        for (long i = 0; i < m; ++i) p[i] = w[i] * (p[i] - (y[i] == l ? 1.0 : 0.0));
    }
    return value;
}

// Loss and residual of rows i0 .. i0 + m; eta and r point at row i0 of the first output.
double loss_rows(const Data& d, long i0, long m, long n, const double* eta, double* r, bool want) {
    switch (d.loss) {
        case Loss::gaussian: return gaussian_rows(d, i0, m, eta, r, want);
        case Loss::logistic: return logistic_rows(d, i0, m, eta, r, want);
        case Loss::poisson: return poisson_rows(d, i0, m, eta, r, want);
        case Loss::huber: return huber_rows(d, i0, m, eta, r, want);
        case Loss::multinomial: return multinomial_rows(d, i0, m, n, eta, r, want);
        case Loss::flow: return flow_rows(d, i0, m, eta, r, want);
        case Loss::user: break;
    }
    return 0.0;
}

// --- products with a run of rows of dense columns ------------------------------------------------------------

void add_columns(const double* const* x, int k, long i0, long m, const double* beta, double* eta) {
    int c = 0;
    for (; c + 8 <= k; c += 8) {
        const double *x0 = x[c] + i0, *x1 = x[c + 1] + i0, *x2 = x[c + 2] + i0, *x3 = x[c + 3] + i0;
        const double *x4 = x[c + 4] + i0, *x5 = x[c + 5] + i0, *x6 = x[c + 6] + i0, *x7 = x[c + 7] + i0;
        const double b0 = beta[c], b1 = beta[c + 1], b2 = beta[c + 2], b3 = beta[c + 3];
        const double b4 = beta[c + 4], b5 = beta[c + 5], b6 = beta[c + 6], b7 = beta[c + 7];
#pragma omp simd
        for (long i = 0; i < m; ++i)
            eta[i] += ((b0 * x0[i] + b1 * x1[i]) + (b2 * x2[i] + b3 * x3[i])) +
                      ((b4 * x4[i] + b5 * x5[i]) + (b6 * x6[i] + b7 * x7[i]));
    }
    for (; c < k; ++c) {
        const double *x0 = x[c] + i0, b0 = beta[c];
#pragma omp simd
        for (long i = 0; i < m; ++i) eta[i] += b0 * x0[i];
    }
}

void add_dots(const double* const* x, int k, long i0, long m, const double* r, double* g) {
    int c = 0;
    for (; c + 8 <= k; c += 8) {
        const double *x0 = x[c] + i0, *x1 = x[c + 1] + i0, *x2 = x[c + 2] + i0, *x3 = x[c + 3] + i0;
        const double *x4 = x[c + 4] + i0, *x5 = x[c + 5] + i0, *x6 = x[c + 6] + i0, *x7 = x[c + 7] + i0;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, s4, s5, s6, s7)
        for (long i = 0; i < m; ++i) {
            s0 += x0[i] * r[i];
            s1 += x1[i] * r[i];
            s2 += x2[i] * r[i];
            s3 += x3[i] * r[i];
            s4 += x4[i] * r[i];
            s5 += x5[i] * r[i];
            s6 += x6[i] * r[i];
            s7 += x7[i] * r[i];
        }
        g[c] += s0, g[c + 1] += s1, g[c + 2] += s2, g[c + 3] += s3;
        g[c + 4] += s4, g[c + 5] += s5, g[c + 6] += s6, g[c + 7] += s7;
    }
    for (; c < k; ++c) {
        const double* x0 = x[c] + i0;
        double s0 = 0;
#pragma omp simd reduction(+ : s0)
        for (long i = 0; i < m; ++i) s0 += x0[i] * r[i];
        g[c] += s0;
    }
}

// Dots of columns with two vectors at once: the columns are read once.
void add_dots2(const double* const* x, int k, long i0, long m, const double* u, const double* v, double* a, double* b) {
    int c = 0;
    for (; c + 4 <= k; c += 4) {
        const double *x0 = x[c] + i0, *x1 = x[c + 1] + i0, *x2 = x[c + 2] + i0, *x3 = x[c + 3] + i0;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, t0, t1, t2, t3)
        for (long i = 0; i < m; ++i) {
            s0 += x0[i] * u[i];
            s1 += x1[i] * u[i];
            s2 += x2[i] * u[i];
            s3 += x3[i] * u[i];
            t0 += x0[i] * v[i];
            t1 += x1[i] * v[i];
            t2 += x2[i] * v[i];
            t3 += x3[i] * v[i];
        }
        a[c] += s0, a[c + 1] += s1, a[c + 2] += s2, a[c + 3] += s3;
        b[c] += t0, b[c + 1] += t1, b[c + 2] += t2, b[c + 3] += t3;
    }
    add_dots(x + c, k - c, i0, m, u, a + c);
    add_dots(x + c, k - c, i0, m, v, b + c);
}

// --- products with sparse columns, centred and scaled on the fly ---------------------------------------------

void sparse_matvec(const Columns& x, const double* beta, double* eta) {
    double shift = 0.0;
    for (int c = 0; c < x.k; ++c) {
        const double b = beta[c] / x.scale[c];
        if (b == 0.0) continue;
        shift += b * x.center[c];
        const double* v = x.values[c];
        const int32_t* row = x.rows[c];
        for (long e = 0; e < x.counts[c]; ++e) eta[row[e]] += b * v[e];
    }
    if (shift != 0.0)
        for (long i = 0; i < x.n; ++i) eta[i] -= shift;
}

double total(const double* r, long n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < n; ++i) sum += r[i];
    return sum;
}

void sparse_rmatvec(const Columns& x, const double* r, double* g) {
    const double sum = total(r, x.n);
    for (int c = 0; c < x.k; ++c) {
        const double* v = x.values[c];
        const int32_t* row = x.rows[c];
        double dot = 0.0;
        for (long e = 0; e < x.counts[c]; ++e) dot += v[e] * r[row[e]];
        g[c] = (dot - x.center[c] * sum) / x.scale[c];
    }
}

void clear(double* x, long size) {
    if (size > 0) std::memset(x, 0, sizeof(double) * size);  // without columns there may be no array
}

// --- the table -----------------------------------------------------------------------------------------------

void start_rows(const Data& d, long n, long i0, long m, const double* alpha, double* eta) {
    for (int l = 0; l < d.q; ++l) {
        double* e = eta + l * n + i0;
        const double a = alpha[l];
        const double* o = d.offset ? d.offset + l * n + i0 : nullptr;
        for (long i = 0; i < m; ++i) e[i] = o ? a + o[i] : a;
    }
}

double gradient(const Columns& x, const Data& d, const double* alpha, const double* beta, double* eta, double* r,
                double* g, bool want) {
    const long n = x.n;
    const long rows = rows_per_block(x.k);
    double value = 0.0;
    clear(g, long(d.q) * x.k);
    if (!x.dense) {
        start_rows(d, n, 0, n, alpha, eta);
        for (int l = 0; l < d.q; ++l) sparse_matvec(x, beta + l * x.k, eta + l * n);
        for (long i = 0; i < n; i += kMaxRows)
            value += loss_rows(d, i, n - i < kMaxRows ? n - i : kMaxRows, n, eta + i, r + i, want);
        for (int l = 0; l < d.q; ++l) sparse_rmatvec(x, r + l * n, g + l * x.k);
        return value;
    }
    for (long i = 0; i < n; i += rows) {
        const long m = n - i < rows ? n - i : rows;
        start_rows(d, n, i, m, alpha, eta);
        for (int l = 0; l < d.q; ++l) add_columns(x.dense, x.k, i, m, beta + l * x.k, eta + l * n + i);
        value += loss_rows(d, i, m, n, eta + i, r + i, want);
        for (int l = 0; l < d.q; ++l) add_dots(x.dense, x.k, i, m, r + l * n + i, g + l * x.k);
    }
    return value;
}

void predict(const Columns& x, const Data& d, const double* alpha, const double* beta, double* eta) {
    const long rows = x.dense ? rows_per_block(x.k) : x.n;
    for (long i = 0; i < x.n; i += rows) {
        const long m = x.n - i < rows ? x.n - i : rows;
        start_rows(d, x.n, i, m, alpha, eta);
        for (int l = 0; l < d.q; ++l) {
            if (x.dense)
                add_columns(x.dense, x.k, i, m, beta + l * x.k, eta + l * x.n + i);
            else
                sparse_matvec(x, beta + l * x.k, eta + l * x.n);
        }
    }
}

void curvature(const Data& d, long n, const double* eta, double* h) {
    if (d.loss == Loss::multinomial) {
        double top[kMaxRows], sum[kMaxRows];
        for (long i = 0; i < n; i += kMaxRows)
            softmax_rows(d.q, n - i < kMaxRows ? n - i : kMaxRows, n, eta + i, top, sum, h + i);
        return;
    }
    for (long i = 0; i < n; ++i) {
        if (d.loss == Loss::gaussian) h[i] = d.w[i];
        if (d.loss == Loss::huber) h[i] = absolute(eta[i] - d.y[i]) <= d.parameter ? d.w[i] : 0.0;
    }
    if (d.loss == Loss::logistic) {
#pragma omp simd
        for (long i = 0; i < n; ++i) {
            const double e = fast_exp(-absolute(eta[i]));
            h[i] = d.w[i] * e / ((1.0 + e) * (1.0 + e));
        }
    }
    if (d.loss == Loss::flow) {
#pragma omp simd
        for (long i = 0; i < n; ++i) h[i] = 0.25 * d.w[i] * fast_exp(-0.5 * d.y[i] * eta[i]);
    }
    if (d.loss == Loss::poisson) {
#pragma omp simd
        for (long i = 0; i < n; ++i) h[i] = d.w[i] * fast_exp(eta[i]);
    }
}

void bend_part(const Data& d, long n, long i0, long m, const double* h, double* u) {
    if (d.loss != Loss::multinomial) {
        for (long i = i0; i < i0 + m; ++i) u[i] *= h[i];
        return;
    }
    for (long i = i0; i < i0 + m; ++i) {
        double mean = 0.0;
        for (int l = 0; l < d.q; ++l) mean += h[l * n + i] * u[l * n + i];
        for (int l = 0; l < d.q; ++l) u[l * n + i] = d.w[i] * h[l * n + i] * (u[l * n + i] - mean);
    }
}

void bend_rows(const Data& d, long n, const double* h, double* u) { bend_part(d, n, 0, n, h, u); }

void bend(const Columns& x, const Data& d, const double* h, const double* v0, const double* v, double* u, double* g,
          double* g0) {
    const long n = x.n;
    const Data plain{d.loss, d.parameter, d.q, d.y, d.w, nullptr};
    const long rows = x.dense ? rows_per_block(x.k) : n;
    clear(g, long(d.q) * x.k);
    for (long i = 0; i < n; i += rows) {
        const long m = n - i < rows ? n - i : rows;
        start_rows(plain, n, i, m, v0, u);
        for (int l = 0; l < d.q; ++l) {
            if (x.dense)
                add_columns(x.dense, x.k, i, m, v + l * x.k, u + l * n + i);
            else
                sparse_matvec(x, v + l * x.k, u + l * n);
        }
        bend_part(d, n, i, m, h, u);
        for (int l = 0; l < d.q; ++l) {
            if (x.dense)
                add_dots(x.dense, x.k, i, m, u + l * n + i, g + l * x.k);
            else
                sparse_rmatvec(x, u + l * n, g + l * x.k);
        }
    }
    for (int l = 0; l < d.q; ++l) g0[l] = total(u + l * n, n);
}

void dots(const Columns& x, int q, const double* u, const double* v, double* a, double* b) {
    if (!x.dense) {
        for (int l = 0; l < q; ++l) {
            sparse_rmatvec(x, u + l * x.n, a + l * x.k);
            sparse_rmatvec(x, v + l * x.n, b + l * x.k);
        }
        return;
    }
    const long rows = rows_per_block(x.k);
    clear(a, long(q) * x.k);
    clear(b, long(q) * x.k);
    for (long i = 0; i < x.n; i += rows) {
        const long m = x.n - i < rows ? x.n - i : rows;
        for (int l = 0; l < q; ++l)
            add_dots2(x.dense, x.k, i, m, u + l * x.n + i, v + l * x.n + i, a + l * x.k, b + l * x.k);
    }
}

// Dots of four columns with four vectors on a run of rows: every number that is read is used four times.
void add_tile(const double* const* x, const double* const* u, long i0, long m, double* out, long stride) {
    const double *x0 = x[0] + i0, *x1 = x[1] + i0, *x2 = x[2] + i0, *x3 = x[3] + i0;
    const double *u0 = u[0] + i0, *u1 = u[1] + i0, *u2 = u[2] + i0, *u3 = u[3] + i0;
    double a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
    double c0 = 0, c1 = 0, c2 = 0, c3 = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0;
#pragma omp simd reduction(+ : a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3)
    for (long i = 0; i < m; ++i) {
        a0 += x0[i] * u0[i], a1 += x1[i] * u0[i], a2 += x2[i] * u0[i], a3 += x3[i] * u0[i];
        b0 += x0[i] * u1[i], b1 += x1[i] * u1[i], b2 += x2[i] * u1[i], b3 += x3[i] * u1[i];
        c0 += x0[i] * u2[i], c1 += x1[i] * u2[i], c2 += x2[i] * u2[i], c3 += x3[i] * u2[i];
        d0 += x0[i] * u3[i], d1 += x1[i] * u3[i], d2 += x2[i] * u3[i], d3 += x3[i] * u3[i];
    }
    const double sums[4][4] = {{a0, a1, a2, a3}, {b0, b1, b2, b3}, {c0, c1, c2, c3}, {d0, d1, d2, d3}};
    for (int l = 0; l < 4; ++l)
        for (int c = 0; c < 4; ++c) out[l * stride + c] += sums[l][c];
}

void cross(const double* const* x, int k, const double* const* u, int q, long n, double* out) {
    constexpr long rows = 256;
    clear(out, long(k) * q);
    for (long i = 0; i < n; i += rows) {
        const long m = n - i < rows ? n - i : rows;
        int l = 0;
        for (; l + 4 <= q; l += 4) {
            double* to = out + static_cast<long>(l) * k;
            int c = 0;
            for (; c + 4 <= k; c += 4) add_tile(x + c, u + l, i, m, to + c, k);
            for (int j = 0; j < 4; ++j) add_dots(x + c, k - c, i, m, u[l + j] + i, to + j * k + c);
        }
        for (; l < q; ++l) add_dots(x, k, i, m, u[l] + i, out + static_cast<long>(l) * k);
    }
}

void totals(long n, int q, const double* r, double* out) {
    for (int l = 0; l < q; ++l) out[l] = total(r + l * n, n);
}

void combine(long size, const double* c, const double* const* a, double* out) {
    const double c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4];
    const double *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3], *a4 = a[4];
#pragma omp simd
    for (long i = 0; i < size; ++i) out[i] = c0 * a0[i] + c1 * a1[i] + c2 * a2[i] + c3 * a3[i] + c4 * a4[i];
}

}  // namespace

extern "C" const bregpath::Kernels* BREGPATH_NAME(bregpath_kernels)() {
    static constexpr bregpath::Kernels table{
        .isa = BREGPATH_TEXT(BREGPATH_ISA),
        .gradient = gradient,
        .predict = predict,
        .curvature = curvature,
        .bend_rows = bend_rows,
        .bend = bend,
        .dots = dots,
        .cross = cross,
        .totals = totals,
        .combine = combine,
    };
    return &table;
}

// The kernels, compiled once for each instruction set with -DBREGPATH_ISA=base|v3|v4.
// Only static or extern "C" code here: see the rule in kernels.hpp.
//
// A gradient reads the columns once: rows are taken in blocks small enough that their part of X stays in the cache
// between X beta and X' r.
#include "kernels.hpp"
#include "krylov_kernels.hpp"
#include "moment_kernels.hpp"
#include "panel_kernels.hpp"
#include "pattern_kernels.hpp"
#include "row_losses.hpp"
#include "spin_kernels.hpp"
#include "state_kernels.hpp"
#include "sweep_kernels.hpp"
#include "tridiagonal.hpp"

#ifndef BREGPATH_ISA
#define BREGPATH_ISA base
#endif
#define BREGPATH_JOIN_(name, isa) name##_##isa
#define BREGPATH_JOIN(name, isa) BREGPATH_JOIN_(name, isa)
#define BREGPATH_NAME(name) BREGPATH_JOIN(name, BREGPATH_ISA)   // name -> name_v3
#define BREGPATH_TEXT_(isa) #isa
#define BREGPATH_TEXT(isa) BREGPATH_TEXT_(isa)

namespace {

constexpr Size kBlockNumbers = 32768;  // entries of X per block of rows: 256 kB
constexpr Size kMinRows = 64;

Size rows_per_block(Size k) {
    Size rows = kBlockNumbers / (k > 0 ? k : 1);
    rows = rows < kMinRows ? kMinRows : rows > kMaxRows ? kMaxRows : rows;
    return rows & ~Size{7};
}

// Calls work(i, m) for runs of m rows from row i on; sparse columns take all rows at once.
template <class Work>
void by_rows(const Columns& x, Work work) {
    const Size rows = x.is_dense ? rows_per_block(x.k) : x.n;
    for (Size i = 0; i < x.n; i += rows) work(i, x.n - i < rows ? x.n - i : rows);
}

// --- products with a run of rows of dense columns ------------------------------------------------------------

// A sum of four columns, each times its coefficient.
struct FourColumns {
    const double *x0, *x1, *x2, *x3;
    double b0, b1, b2, b3;

    FourColumns(const Column* x, Size i0, const double* b)
        : x0(x[0].values + i0), x1(x[1].values + i0), x2(x[2].values + i0), x3(x[3].values + i0), b0(b[0]), b1(b[1]),
          b2(b[2]), b3(b[3]) {}
    double at(Size i) const { return (b0 * x0[i] + b1 * x1[i]) + (b2 * x2[i] + b3 * x3[i]); }
};

void add_dense_columns(const Column* x, Size k, Size i0, Size m, const double* beta, double* eta) {
    Size c = 0;
    for (; c + 8 <= k; c += 8) {
        const FourColumns one(x + c, i0, beta + c), two(x + c + 4, i0, beta + c + 4);
#pragma omp simd
        for (Size i = 0; i < m; ++i) eta[i] += one.at(i) + two.at(i);
    }
    for (; c + 4 <= k; c += 4) {
        const FourColumns one(x + c, i0, beta + c);
#pragma omp simd
        for (Size i = 0; i < m; ++i) eta[i] += one.at(i);
    }
    for (; c < k; ++c) {
        const double *x0 = x[c].values + i0, b0 = beta[c];
#pragma omp simd
        for (Size i = 0; i < m; ++i) eta[i] += b0 * x0[i];
    }
}

// The same for two sets of coefficients at once: the columns are read once.
void add_dense_columns2(const Column* x, Size k, Size i0, Size m, const double* a, const double* b, double* u, double* v) {
    Size c = 0;
    for (; c + 4 <= k; c += 4) {
        const FourColumns one(x + c, i0, a + c), two(x + c, i0, b + c);
#pragma omp simd
        for (Size i = 0; i < m; ++i) u[i] += one.at(i), v[i] += two.at(i);
    }
    add_dense_columns(x + c, k - c, i0, m, a + c, u);
    add_dense_columns(x + c, k - c, i0, m, b + c, v);
}

// The same for many sets of coefficients, on some lines of eight rows, whose sums stay in registers.
template <int lines>
void add_outputs(const Columns& x, Size q, Size i, const double* beta, double* eta) {
    for (Size first = 0; first < q; first += kStripColumns) {
        const Size count = q - first < kStripColumns ? q - first : kStripColumns;
        const double* b[kStripColumns];  // what is missing is the last one again, whose sums are left out
        for (Size l = 0; l < kStripColumns; ++l) b[l] = beta + (first + (l < count ? l : count - 1)) * x.k;
        Eight sums[kStripColumns][lines] = {};
        for (Size c = 0; c < x.k; ++c)
            for (int l = 0; l < kStripColumns; ++l)
                for (int e = 0; e < lines; ++e) sums[l][e].add(b[l][c], reinterpret_cast<const Eight*>(x.at[c].values + i)[e]);
        for (Size l = 0; l < count; ++l)
            for (int e = 0; e < lines; ++e) reinterpret_cast<Eight*>(eta + (first + l) * x.n + i)[e] += sums[l][e];
    }
}

void add_dense_dots(const Column* x, Size k, Size i0, Size m, const double* r, double* g) {
    Size c = 0;
    for (; c + 8 <= k; c += 8) {
        const double *x0 = x[c].values + i0, *x1 = x[c + 1].values + i0, *x2 = x[c + 2].values + i0, *x3 = x[c + 3].values + i0;
        const double *x4 = x[c + 4].values + i0, *x5 = x[c + 5].values + i0, *x6 = x[c + 6].values + i0, *x7 = x[c + 7].values + i0;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, s4, s5, s6, s7)
        for (Size i = 0; i < m; ++i) {
            s0 += x0[i] * r[i], s1 += x1[i] * r[i], s2 += x2[i] * r[i], s3 += x3[i] * r[i];
            s4 += x4[i] * r[i], s5 += x5[i] * r[i], s6 += x6[i] * r[i], s7 += x7[i] * r[i];
        }
        g[c] += s0, g[c + 1] += s1, g[c + 2] += s2, g[c + 3] += s3;
        g[c + 4] += s4, g[c + 5] += s5, g[c + 6] += s6, g[c + 7] += s7;
    }
    for (; c + 4 <= k; c += 4) {
        const double *x0 = x[c].values + i0, *x1 = x[c + 1].values + i0, *x2 = x[c + 2].values + i0, *x3 = x[c + 3].values + i0;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
        for (Size i = 0; i < m; ++i) s0 += x0[i] * r[i], s1 += x1[i] * r[i], s2 += x2[i] * r[i], s3 += x3[i] * r[i];
        g[c] += s0, g[c + 1] += s1, g[c + 2] += s2, g[c + 3] += s3;
    }
    for (; c < k; ++c) {
        const double* x0 = x[c].values + i0;
        double s0 = 0;
#pragma omp simd reduction(+ : s0)
        for (Size i = 0; i < m; ++i) s0 += x0[i] * r[i];
        g[c] += s0;
    }
}

// Dots of columns with two vectors at once: the columns are read once.
void add_dense_dots2(const Column* x, Size k, Size i0, Size m, const double* u, const double* v, double* a, double* b) {
    Size c = 0;
    for (; c + 4 <= k; c += 4) {
        const double *x0 = x[c].values + i0, *x1 = x[c + 1].values + i0, *x2 = x[c + 2].values + i0, *x3 = x[c + 3].values + i0;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, t0, t1, t2, t3)
        for (Size i = 0; i < m; ++i) {
            s0 += x0[i] * u[i], s1 += x1[i] * u[i], s2 += x2[i] * u[i], s3 += x3[i] * u[i];
            t0 += x0[i] * v[i], t1 += x1[i] * v[i], t2 += x2[i] * v[i], t3 += x3[i] * v[i];
        }
        a[c] += s0, a[c + 1] += s1, a[c + 2] += s2, a[c + 3] += s3;
        b[c] += t0, b[c + 1] += t1, b[c + 2] += t2, b[c + 3] += t3;
    }
    add_dense_dots(x + c, k - c, i0, m, u, a + c);
    add_dense_dots(x + c, k - c, i0, m, v, b + c);
}

// --- products with sparse columns, centred and scaled on the fly ---------------------------------------------

// Four rows at a time, which the compiler cannot know to be different ones.
template <class Term>
void add_to_four(const Column& x, double* eta, Term term) {
    Size e = 0;
    for (; e + 4 <= x.count; e += 4) {
        double *e0 = eta + x.rows[e], *e1 = eta + x.rows[e + 1], *e2 = eta + x.rows[e + 2], *e3 = eta + x.rows[e + 3];
        const double s0 = *e0 + term(e), s1 = *e1 + term(e + 1), s2 = *e2 + term(e + 2), s3 = *e3 + term(e + 3);
        *e0 = s0, *e1 = s1, *e2 = s2, *e3 = s3;
    }
    for (; e < x.count; ++e) eta[x.rows[e]] += term(e);
}

void add_sparse_columns(const Columns& x, const double* beta, double* eta) {
    double shift = 0.0;
    for (Size c = 0; c < x.k; ++c) {
        const Column& column = x.at[c];
        const double b = beta[c] / column.scale;
        if (b == 0.0) continue;
        shift += b * column.center;
        if (column.is_indicator) {
            const double change = b * *column.values;
            add_to_four(column, eta, [=](Size) { return change; });
        } else {
            add_to_four(column, eta, [&](Size e) { return b * column.values[e]; });
        }
    }
    Size l = 0;
    for (; l + 2 <= x.n_groups; l += 2, shift = 0.0) add_two_patterns(x, x.groups + l, beta, -shift, eta);
    for (; l < x.n_groups; ++l, shift = 0.0) add_patterns(x, x.groups[l], beta, -shift, eta);
    if (shift != 0.0)
        for (Size i = 0; i < x.n; ++i) eta[i] -= shift;
}

// Four sums side by side do not wait for each other.
template <class Term>
double sum_of_four(Size count, Term term) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    Size e = 0;
    for (; e + 4 <= count; e += 4) s0 += term(e), s1 += term(e + 1), s2 += term(e + 2), s3 += term(e + 3);
    for (; e < count; ++e) s0 += term(e);
    return (s0 + s1) + (s2 + s3);
}

double sparse_dot(const Column& x, const double* r) {
    if (x.is_indicator) return *x.values * sum_of_four(x.count, [&](Size e) { return r[x.rows[e]]; });
    return sum_of_four(x.count, [&](Size e) { return x.values[e] * r[x.rows[e]]; });
}

// Dots of columns with two vectors at once: the columns, which may lie far from each other, are read once.
void add_sparse_dots2(const Columns& x, const double* u, const double* v, double* a, double* b) {
    const Together<2> sum =
        x.n_groups > 0 ? add_pattern_dots<2>(x, {u, v}, {a, b}) : Together<2>{total(u, x.n), total(v, x.n)};
    for (Size c = 0; c < x.k; ++c) {
        const Column& column = x.at[c];
        const double of_u = sparse_dot(column, u), of_v = sparse_dot(column, v);
        a[c] += (of_u - column.center * sum.of[0]) / column.scale;
        b[c] += (of_v - column.center * sum.of[1]) / column.scale;
    }
}

void add_sparse_dots(const Columns& x, const double* r, double* g) {
    const double sum = x.n_groups > 0 ? add_pattern_dots<1>(x, {r}, {g}).of[0] : total(r, x.n);
    for (Size c = 0; c < x.k; ++c) {
        const Column& column = x.at[c];
        g[c] += (sparse_dot(column, r) - column.center * sum) / column.scale;
    }
}

// --- products with columns of either kind, on rows i .. i + m; arrays begin at row 0 ---------------------------

void add_columns(const Columns& x, Size q, Size i, Size m, const double* beta, double* eta) {
    if (x.is_dense && kStripColumns > 2 && q > kStripColumns / 2) {  // few registers are better used by two outputs
        const Size end = i + m;
        for (; i + 8 * kStripLines <= end; i += 8 * kStripLines) add_outputs<kStripLines>(x, q, i, beta, eta);
        for (; i + 8 <= end; i += 8) add_outputs<1>(x, q, i, beta, eta);
        m = end - i;
    }
    Size l = 0;
    for (; x.is_dense && l + 2 <= q; l += 2) {
        const double* b = beta + l * x.k;
        double* e = eta + l * x.n + i;
        add_dense_columns2(x.at, x.k, i, m, b, b + x.k, e, e + x.n);
    }
    for (; l < q; ++l) {
        if (x.is_dense)
            add_dense_columns(x.at, x.k, i, m, beta + l * x.k, eta + l * x.n + i);
        else
            add_sparse_columns(x, beta + l * x.k, eta + l * x.n);
    }
}

void add_dots(const Columns& x, Size q, Size i, Size m, const double* r, double* g) {
    for (Size l = 0; l < q; ++l) {
        if (x.is_dense)
            add_dense_dots(x.at, x.k, i, m, r + l * x.n + i, g + l * x.k);
        else
            add_sparse_dots(x, r + l * x.n, g + l * x.k);
    }
}

// --- the table -----------------------------------------------------------------------------------------------

double gradient(const Columns& x, const Data& d, const double* alpha, const double* beta, double* eta, double* r,
                double* g, bool want) {
    double value = 0.0;
    clear(g, d.q * x.k);
    by_rows(x, [&](Size i, Size m) {
        start_rows(d.offset, d.q, x.n, i, m, alpha, eta);
        add_columns(x, d.q, i, m, beta, eta);
        value += loss_rows(d, i, m, x.n, eta + i, r + i, want);
        add_dots(x, d.q, i, m, r, g);
    });
    return value;
}

void predict(const Columns& x, const Data& d, const double* alpha, const double* beta, double* eta) {
    by_rows(x, [&](Size i, Size m) {
        start_rows(d.offset, d.q, x.n, i, m, alpha, eta);
        add_columns(x, d.q, i, m, beta, eta);
    });
}

double loss(const Data& d, Size n, const double* eta, double* r) { return loss_rows(d, 0, n, n, eta, r, true); }

void totals(Size n, Size q, const double* r, double* out) {
    for (Size l = 0; l < q; ++l) out[l] = total(r + l * n, n);
}

void hessian(const Columns& x, const Data& d, const double* h, const double* v0, const double* v, double* u, double* g,
             double* g0) {
    clear(g, d.q * x.k);
    by_rows(x, [&](Size i, Size m) {
        start_rows(nullptr, d.q, x.n, i, m, v0, u);
        add_columns(x, d.q, i, m, v, u);
        curve_rows(d, x.n, i, m, h, u);
        add_dots(x, d.q, i, m, u, g);
    });
    totals(x.n, d.q, u, g0);
}

void dots(const Columns& x, const double* const* u, Size q, double* out) {
    clear(out, x.k * q);
    if (!x.is_dense) {
        Size l = 0;
        for (; l + 2 <= q; l += 2) add_sparse_dots2(x, u[l], u[l + 1], out + l * x.k, out + (l + 1) * x.k);
        if (l < q) add_sparse_dots(x, u[l], out + l * x.k);
        return;
    }
    constexpr Size rows = 8192;  // long pieces of columns are foreseen by the processor
    for (Size i = 0; i < x.n; i += rows) {
        const Size m = x.n - i < rows ? x.n - i : rows;
        const Size fours = q & ~Size{3}, whole = x.k & ~Size{3};
        // All vectors meet four columns before the next four are read: X is what comes from far away.
        for (Size c = 0; c < whole; c += 4)
            for (Size l = 0; l < fours; l += 4) add_tile(x.at + c, u + l, i, m, out + l * x.k + c, x.k);
        for (Size l = 0; l < fours; ++l)
            add_dense_dots(x.at + whole, x.k - whole, i, m, u[l] + i, out + l * x.k + whole);
        Size l = fours;
        for (; l + 2 <= q; l += 2)
            add_dense_dots2(x.at, x.k, i, m, u[l] + i, u[l + 1] + i, out + l * x.k, out + (l + 1) * x.k);
        if (l < q) add_dense_dots(x.at, x.k, i, m, u[l] + i, out + l * x.k);
    }
}

void lengths(Size n, const double* R, const double* r, const double* end, const double* last, const double* w, double* out) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, s4)
    for (Size i = 0; i < n; ++i) {
        const double d = R[i] - end[i], wd = w[i] * d, wr = w[i] * r[i];
        s0 += wd * d, s1 += wd * r[i], s2 += wr * r[i], s3 += wd * last[i], s4 += wr * last[i];
    }
    out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3, out[4] = s4;
}

void combine(Size size, const double* c, const double* const* a, double* out) {
    const double c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4];
    const double *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3], *a4 = a[4];
#pragma omp simd
    for (Size i = 0; i < size; ++i) out[i] = c0 * a0[i] + c1 * a1[i] + c2 * a2[i] + c3 * a3[i] + c4 * a4[i];
}

Size crossings(Size m, const double* x, const double* threshold, const double* active) {
    Size count = 0;
#pragma omp simd reduction(+ : count)
    for (Size j = 0; j < m; ++j) count += ((x[j] > threshold[j]) | (-x[j] > threshold[j])) != (active[j] > 0);
    return count;
}

void shrink_cubics(Size m, const double* shares, const double* z, const double* z_end, const double* slope, const double* slope_end,
                   const double* weights, double kappa, double* beta) {
    const double s0 = shares[0], s1 = shares[1], s2 = shares[2], s3 = shares[3];
#pragma omp simd
    for (Size i = 0; i < m; ++i) {
        const double w = weights[i], at = s0 * z[i] + s1 * z_end[i] + s2 * slope[i] - s3 * slope_end[i];
        const bool moves = (z[i] > w) | (-z[i] > w) | (z_end[i] > w) | (-z_end[i] > w) | (w == 0);
        const double beyond = at > w ? at - w : -at > w ? at + w : 0.0;
        beta[i] = moves ? kappa * beyond : 0.0;
    }
}

void add(Size size, double factor, const double* x, double* to) {
#pragma omp simd
    for (Size i = 0; i < size; ++i) to[i] += factor * x[i];
}

}  // namespace

extern "C" const bregpath::Kernels* BREGPATH_NAME(bregpath_kernels)() {
    static constexpr bregpath::Kernels table{
        .isa = BREGPATH_TEXT(BREGPATH_ISA),
        .gradient = gradient,
        .predict = predict,
        .loss = loss,
        .curvature = curvature,
        .hessian = hessian,
        .panel_gradient = panel_gradient,
        .panel_hessian = panel_hessian,
        .dots = dots,
        .many_dots = many_dots,
        .totals = totals,
        .lengths = lengths,
        .predict_states = predict_states,
        .add_states = add_states,
        .loss_states = loss_states,
        .share_states = share_states,
        .curve_states = curve_states,
        .make_spin_table = make_spin_table,
        .predict_spins = predict_spins,
        .add_spins = add_spins,
        .integrate_rows = integrate_rows,
        .logistic_spins = logistic_spins,
        .log_factors = log_factors,
        .weigh = weigh,
        .symmetric_product = symmetric_product,
        .change_by_square = change_by_square,
        .next_direction = next_direction,
        .combine_rows = combine_rows,
        .decay = decay,
        .coast = coast,
        .farthest = farthest,
        .combine = combine,
        .add = add,
        .diagonalise = diagonalise,
        .sweep = sweep,
        .gram = gram,
        .crossings = crossings,
        .shrink_cubics = shrink_cubics,
        .lessen = lessen,
        .spread = spread,
    };
    return &table;
}

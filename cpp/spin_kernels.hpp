// Spins of many nodes, part of kernels_isa.cpp and under its rule: see kernels.hpp.
//
// Six spins of a row are one of 64 patterns. What they add to the predictors of eight nodes, side by side, is one row
// of a table (64, 8): X beta looks it up instead of multiplying six columns, and X'r adds up the rows of r with the
// same pattern; what six columns make of it is told from 64 sums instead of n rows.
#pragma once

#include "eight.hpp"
#include "kernels.hpp"
#include "scalars.hpp"

namespace {

using bregpath::kSpinGroup;
using bregpath::kSpinLanes;
using bregpath::kSpinPatterns;
using bregpath::SpinPatterns;
using bregpath::RowsByPattern;
using bregpath::Size;

static_assert(kSpinLanes == 8 && kSpinGroup == 6 && kSpinPatterns == 64);

inline const Eight& eight(const double* at, Size row) { return *reinterpret_cast<const Eight*>(at + row * kSpinLanes); }
inline Eight& eight(double* at, Size row) { return *reinterpret_cast<Eight*>(at + row * kSpinLanes); }

constexpr Size kTableNumbers = kSpinPatterns * kSpinLanes;

// Bit b of a pattern is set where spin b is up.
void make_spin_table(const double* beta, double* table) {
    Eight none;
    clear(none);
    for (Size b = 0; b < kSpinGroup; ++b) none -= eight(beta, b);
    eight(table, 0) = none;
    for (Size b = 0; b < kSpinGroup; ++b) {
        Eight twice = eight(beta, b);
        twice += eight(beta, b);
        for (Size k = 0; k < Size{1} << b; ++k) {
            Eight with = eight(table, k);
            with += twice;
            eight(table, k + (Size{1} << b)) = with;
        }
    }
}

template <int groups, bool is_first>
void predict_groups(const SpinPatterns& x, Size g0, const double* tables, const double* alpha, double* eta) {
    const std::uint8_t* pattern[groups];
    for (int g = 0; g < groups; ++g) pattern[g] = x.of[g0 + g];
    tables += g0 * kTableNumbers;
    const Size m = x.m;
    const Eight start = eight(alpha, 0);
    for (Size i = 0; i < m; ++i) {
        Eight sum;
        if constexpr (is_first)
            sum = start;
        else
            sum = eight(eta, i);
        for (int g = 0; g < groups; ++g) sum += eight(tables + g * kTableNumbers, pattern[g][i]);
        eight(eta, i) = sum;
    }
}

// The rest of the groups, fewer than eight.
template <bool is_first>
void predict_rest(const SpinPatterns& x, Size g0, const double* tables, const double* alpha, double* eta) {
    switch (x.groups - g0) {
        case 1: return predict_groups<1, is_first>(x, g0, tables, alpha, eta);
        case 2: return predict_groups<2, is_first>(x, g0, tables, alpha, eta);
        case 3: return predict_groups<3, is_first>(x, g0, tables, alpha, eta);
        case 4: return predict_groups<4, is_first>(x, g0, tables, alpha, eta);
        case 5: return predict_groups<5, is_first>(x, g0, tables, alpha, eta);
        case 6: return predict_groups<6, is_first>(x, g0, tables, alpha, eta);
        case 7: return predict_groups<7, is_first>(x, g0, tables, alpha, eta);
    }
}

void predict_spins(const SpinPatterns& x, const double* tables, const double* alpha, double* eta) {
    if (x.groups == 0)
        for (Size i = 0; i < x.m; ++i) eight(eta, i) = eight(alpha, 0);
    else if (x.groups < 8)
        return predict_rest<true>(x, 0, tables, alpha, eta);
    else
        predict_groups<8, true>(x, 0, tables, alpha, eta);
    Size g = 8;
    for (; g + 8 <= x.groups; g += 8) predict_groups<8, false>(x, g, tables, alpha, eta);
    predict_rest<false>(x, g, tables, alpha, eta);
}

// What three bits make of the sums of eight patterns.
inline void add_bits(const Eight* sums, double* of_bits) {
    for (Size b = 0; b < 3; ++b) {
        Eight of_bit = eight(of_bits, b);
        for (Size k = 0; k < 8; ++k)
            if (k >> b & 1)
                of_bit += sums[k];
            else
                of_bit -= sums[k];
        eight(of_bits, b) = of_bit;
    }
}

inline void add_table(const Eight* table, double* of_spins) {
    Eight low[8], high[8];
    for (Size k = 0; k < 8; ++k) clear(low[k]), clear(high[k]);
    for (Size h = 0; h < 8; ++h)
        for (Size l = 0; l < 8; ++l) low[l] += table[h * 8 + l], high[h] += table[h * 8 + l];
    add_bits(low, of_spins), add_bits(high, of_spins + 3 * kSpinLanes);
    Eight all = eight(of_spins, kSpinGroup);
    for (Size k = 0; k < 8; ++k) all += low[k];
    eight(of_spins, kSpinGroup) = all;
}

// The sum of a pattern is stored after each four of its rows: to branch where it ends would cost more.
void add_spins(const RowsByPattern& x, const double* u, const double* v, double* of_u, double* of_v) {
    alignas(64) Eight table_u[kSpinPatterns], table_v[kSpinPatterns];
    Eight sum_u, sum_v;
    clear(sum_u), clear(sum_v);
    for (Size k = 0; k < x.absent; ++k) clear(table_u[x.absentees[k]]), clear(table_v[x.absentees[k]]);
    for (Size e = 0; e < x.fours; ++e) {
        const int32_t* row = x.rows + 4 * e;
        Eight a = eight(u, row[0]), b = eight(u, row[2]), c = eight(v, row[0]), d = eight(v, row[2]);
        a += eight(u, row[1]), b += eight(u, row[3]), c += eight(v, row[1]), d += eight(v, row[3]);
        a += b, c += d;
        sum_u *= x.goes_on[e], sum_v *= x.goes_on[e];
        sum_u += a, sum_v += c;
        table_u[x.patterns[e]] = sum_u, table_v[x.patterns[e]] = sum_v;
    }
    add_table(table_u, of_u), add_table(table_v, of_v);
}

void integrate_rows(Size size, const double* h, const double* r, double length, double* u, const double* R,
                    double* R_next) {
#pragma omp simd
    for (Size i = 0; i < size; ++i) {
        u[i] = h[i] * u[i] + length * r[i];
        R_next[i] = R[i] + u[i];
    }
}

// Logarithms of 1 + e are left as factors: those of one row and many nodes have the same weight, and one logarithm.
// Numbers without a weight (nodes that pad a panel) have none.
template <bool want_residual>
double logistic_rows(Size size, const double* y, const double* w, double* eta, double* factors) {
    double value = 0;
#pragma omp simd reduction(+ : value)
    for (Size i = 0; i < size; ++i) {
        const double margin = y[i] * eta[i], distance = absolute(margin), e = fast_exp(-distance);
        value += w[i] * (0.5 * (distance - margin));  // nan where eta is
        factors[i] *= w[i] > 0 ? 1.0 + e : 1.0;
        if constexpr (want_residual) eta[i] = -w[i] * y[i] * (margin > 0 ? e : 1.0) / (1.0 + e);
    }
    return value;
}

double logistic_spins(Size size, const double* y, const double* w, double* eta, double* factors, bool want_residual) {
    return (want_residual ? logistic_rows<true> : logistic_rows<false>)(size, y, w, eta, factors);
}

double log_factors(Size size, const double* w, const double* factors) {
    double value = 0;
#pragma omp simd reduction(+ : value)
    for (Size i = 0; i < size; ++i) value += w[i] * fast_log(factors[i]);
    return value;
}

void weigh(Size size, const double* h, const double* x, double* out) {
#pragma omp simd
    for (Size i = 0; i < size; ++i) out[i] = h[i] * x[i];
}

}  // namespace

// Products with sparse columns by patterns of rows, part of kernels_isa.cpp and under its rule: see kernels.hpp.
//
// Rows with the same pattern of columns have the same sum of coefficients: X beta reads one sum a row, X' r adds a row
// to one. A pattern is its parent and one column more, so that sums of coefficients follow from parent to child, and
// sums over rows from child to parent, with one addition each.
#pragma once

#include "row_losses.hpp"

namespace {

using bregpath::Columns;
using bregpath::kPatternCopies;
using bregpath::PatternColumn;
using bregpath::Patterns;
static_assert(kPatternCopies == 4);

// What each pattern of a group, and `shift`, add to eta.
void sum_coefficients(const Columns& x, const Patterns& group, const double* beta, double shift, double* sum) {
    sum[0] = shift;
    Size s = 1;
    for (const PatternColumn* c = group.columns; s < group.count; ++c) {
        const double b = c->place < 0 ? 0.0 : beta[c->place] / x.at[c->place].scale * *x.at[c->place].values;
        for (; s < c->end; ++s) sum[s] = sum[group.parent[s]] + b;
    }
}

// What two groups of columns, and `shift`, add to eta in one pass over the rows.
void add_two_patterns(const Columns& x, const Patterns* groups, const double* beta, double shift, double* eta) {
    double *sum = x.room, *other = sum + groups[0].count;
    sum_coefficients(x, groups[0], beta, shift, sum), sum_coefficients(x, groups[1], beta, 0.0, other);
    const uint16_t *of_row = groups[0].of_row, *of_other = groups[1].of_row;
    Size i = 0;
    for (; i + 4 <= x.n; i += 4) {  // by hand, as below
        const double e0 = eta[i] + (sum[of_row[i]] + other[of_other[i]]);
        const double e1 = eta[i + 1] + (sum[of_row[i + 1]] + other[of_other[i + 1]]);
        const double e2 = eta[i + 2] + (sum[of_row[i + 2]] + other[of_other[i + 2]]);
        const double e3 = eta[i + 3] + (sum[of_row[i + 3]] + other[of_other[i + 3]]);
        eta[i] = e0, eta[i + 1] = e1, eta[i + 2] = e2, eta[i + 3] = e3;
    }
    for (; i < x.n; ++i) eta[i] += sum[of_row[i]] + other[of_other[i]];
}

// What a group of columns, and `shift`, add to eta.
void add_patterns(const Columns& x, const Patterns& group, const double* beta, double shift, double* eta) {
    double* sum = x.room;
    sum_coefficients(x, group, beta, shift, sum);
    const uint16_t* of_row = group.of_row;
    Size i = 0;
    for (; i + 4 <= x.n; i += 4) {  // by hand: a compiler would gather, which takes longer
        const double e0 = eta[i] + sum[of_row[i]], e1 = eta[i + 1] + sum[of_row[i + 1]];
        const double e2 = eta[i + 2] + sum[of_row[i + 2]], e3 = eta[i + 3] + sum[of_row[i + 3]];
        eta[i] = e0, eta[i + 1] = e1, eta[i + 2] = e2, eta[i + 3] = e3;
    }
    for (; i < x.n; ++i) eta[i] += sum[of_row[i]];
}

// Numbers that are added to the sums of the same pattern.
template <int vectors>
struct Together {
    double of[vectors];
    Together& operator+=(const Together& other) {
        for (int l = 0; l < vectors; ++l) of[l] += other.of[l];
        return *this;
    }
};

template <int vectors>
Together<vectors> row_of(const double* const* u, Size i) {
    Together<vectors> numbers;
    for (int l = 0; l < vectors; ++l) numbers.of[l] = u[l][i];
    return numbers;
}

// Sums over the rows of each pattern. A row would wait for the one before if both had the same: neighbours have sums of
// their own.
template <int vectors>
void sum_by_pattern(Size n, const Patterns& group, const double* const* u, Together<vectors>* sum) {
    const auto row = [u](Size i) { return row_of<vectors>(u, i); };
    const Size count = group.count;
    const uint16_t* of_row = group.of_row;
    Together<vectors> *s1 = sum + count, *s2 = s1 + count, *s3 = s2 + count;
    clear(sum->of, kPatternCopies * count * vectors);
    Size i = 0;
    for (; i + 4 <= n; i += 4) {
        sum[of_row[i]] += row(i), s1[of_row[i + 1]] += row(i + 1);
        s2[of_row[i + 2]] += row(i + 2), s3[of_row[i + 3]] += row(i + 3);
    }
    for (; i < n; ++i) sum[of_row[i]] += row(i);
    for (Size s = 0; s < count; ++s) s2[s] += s3[s], sum[s] += s1[s], sum[s] += s2[s];
}

// The same for two groups in one pass, which have two sums each where one group has four.
template <int vectors>
void sum_by_two_patterns(Size n, const Patterns* groups, const double* const* u, Together<vectors>* sum, Together<vectors>* other) {
    const Size count = groups[0].count, of_other = groups[1].count;
    const uint16_t *a = groups[0].of_row, *b = groups[1].of_row;
    Together<vectors> *sum1 = sum + count, *other1 = other + of_other;
    clear(sum->of, 2 * count * vectors), clear(other->of, 2 * of_other * vectors);
    Size i = 0;
    for (; i + 2 <= n; i += 2) {
        const Together<vectors> first = row_of<vectors>(u, i), second = row_of<vectors>(u, i + 1);
        sum[a[i]] += first, other[b[i]] += first, sum1[a[i + 1]] += second, other1[b[i + 1]] += second;
    }
    for (; i < n; ++i) sum[a[i]] += row_of<vectors>(u, i), other[b[i]] += row_of<vectors>(u, i);
    for (Size s = 0; s < count; ++s) sum[s] += sum1[s];
    for (Size s = 0; s < of_other; ++s) other[s] += other1[s];
}

// Dots of the columns of a group with vectors, from the sums over the rows of its patterns. Then all rows have come together in
// the empty one.
template <int vectors>
void add_group_dots(const Columns& x, const Patterns& group, Together<vectors>* sum, double* const (&g)[vectors]) {
    Size s = group.count - 1;
    for (Size c = group.k - 1; c >= 0; --c) {
        const Size first = c > 0 ? group.columns[c - 1].end : 1, place = group.columns[c].place;
        Together<vectors> total{};
        for (; s >= first; --s) total += sum[s], sum[group.parent[s]] += sum[s];
        if (place < 0) continue;
        const double factor = *x.at[place].values / x.at[place].scale;
        for (int l = 0; l < vectors; ++l) g[l][place] += factor * total.of[l];
    }
}

// Dots of the columns of all groups with vectors, without what centring takes away. Where there is a group it returns the
// sums of all rows.
template <int vectors>
Together<vectors> add_pattern_dots(const Columns& x, const double* const (&u)[vectors], double* const (&g)[vectors]) {
    auto* sum = reinterpret_cast<Together<vectors>*>(x.room);
    Size l = 0;
    for (; l + 2 <= x.n_groups; l += 2) {
        Together<vectors>* other = sum + 2 * x.groups[l].count;
        sum_by_two_patterns(x.n, x.groups + l, u, sum, other);
        add_group_dots<vectors>(x, x.groups[l], sum, g), add_group_dots<vectors>(x, x.groups[l + 1], other, g);
    }
    if (l < x.n_groups) sum_by_pattern(x.n, x.groups[l], u, sum), add_group_dots<vectors>(x, x.groups[l], sum, g);
    return *sum;
}

}  // namespace

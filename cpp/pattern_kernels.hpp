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

// What a group of columns, and `shift`, add to eta.
void add_patterns(const Columns& x, const Patterns& group, const double* beta, double shift, double* eta) {
    double* sum = x.room;
    sum[0] = shift;
    Size s = 1;
    for (const PatternColumn* c = group.columns; s < group.count; ++c) {
        const double b = c->place < 0 ? 0.0 : beta[c->place] / x.at[c->place].scale * *x.at[c->place].values;
        for (; s < c->end; ++s) sum[s] = sum[group.parent[s]] + b;
    }
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

// Sums over the rows of each pattern. A row would wait for the one before if both had the same: neighbours have sums of
// their own.
template <int vectors>
void sum_by_pattern(Size n, const Patterns& group, const double* const* u, Together<vectors>* sum) {
    const auto row = [u](Size i) {
        Together<vectors> numbers;
        for (int l = 0; l < vectors; ++l) numbers.of[l] = u[l][i];
        return numbers;
    };
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

// Dots of the columns of all groups with vectors, without what centring takes away. Where there is a group, all rows
// have come together in its empty pattern: returns their sums.
template <int vectors>
Together<vectors> add_pattern_dots(const Columns& x, const double* const (&u)[vectors], double* const (&g)[vectors]) {
    auto* sum = reinterpret_cast<Together<vectors>*>(x.room);
    for (const Patterns* group = x.groups; group < x.groups + x.n_groups; ++group) {
        sum_by_pattern(x.n, *group, u, sum);
        Size s = group->count - 1;
        for (Size c = group->k - 1; c >= 0; --c) {
            const Size first = c > 0 ? group->columns[c - 1].end : 1, place = group->columns[c].place;
            Together<vectors> total{};
            for (; s >= first; --s) total += sum[s], sum[group->parent[s]] += sum[s];
            if (place < 0) continue;
            const double factor = *x.at[place].values / x.at[place].scale;
            for (int l = 0; l < vectors; ++l) g[l][place] += factor * total.of[l];
        }
    }
    return *sum;
}

}  // namespace

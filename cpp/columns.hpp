// Arrays as the kernels take them.
#pragma once

#include <algorithm>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "kernels.hpp"

namespace bregpath {

// (rows, columns) stored row by row -> (columns, rows) likewise: Python's (n, q) to output by output, and back.
inline void transpose(const double* from, Size rows, Size columns, double* to) {
    for (Size i = 0; i < rows; ++i)
        for (Size l = 0; l < columns; ++l) to[l * rows + i] = from[i * columns + l];
}

// Indicators of most rows as those of the others: v on some rows is v everywhere and -v on the rest. Columns point into it.
class Opposites {
   public:
    // The column of n rows in whichever way less of it is stored.
    Column shorter(const Column& x, Size n) {
        if (!x.is_indicator || 2 * x.count <= n) return x;
        std::vector<bool> is_stored(n, false);
        for (Size e = 0; e < x.count; ++e) is_stored[x.rows[e]] = true;
        std::vector<int32_t> rest;
        for (Size i = 0; i < n; ++i)
            if (!is_stored[i]) rest.push_back(int32_t(i));
        values_.push_back(-*x.values), rows_.push_back(std::move(rest));
        return {&values_.back(), rows_.back().data(), Size(rows_.back().size()), x.center - *x.values, x.scale, true};
    }

   private:
    std::deque<double> values_;
    std::deque<std::vector<int32_t>> rows_;
};

// Columns of `rows` numbers times `count` sets of coefficients, kMostDirections at most.
inline void multiply(const Kernels* kernels, std::span<const Column> columns, Size rows, Size count, const double* v,
                     double* out) {
    const double none[kMostDirections] = {};
    Data plain{};
    plain.q = count;
    kernels->predict({rows, Size(columns.size()), columns.data(), true}, plain, none, v, out);
}

// Columns times vectors, out[l * k + c] = x_c' u_l, packed by eight as long as there are so many and the columns are dense.
class ManyDots {
   public:
    void of(const Kernels* kernels, const Columns& x, std::span<const double* const> u, double* out) {
        const Size q = Size(u.size()), packed = x.is_dense ? q & ~Size{7} : 0, rows = std::min(x.n, kMaxRun);
        run_.resize(std::min(packed, kPacked) * rows);
        for (Size l = 0; l < packed; l += kPacked)
            kernels->many_dots(x, &u[l], std::min(kPacked, packed - l), run_.data(), rows, out + l * x.k);
        if (packed < q) kernels->dots(x, u.data() + packed, q - packed, out + packed * x.k);
    }

   private:
    static constexpr Size kPacked = 64, kMaxRun = 4096;  // vectors and rows at a time
    std::vector<double> run_;
};

// Some of the columns of a design, valid until the next choice.
class ColumnChoice {
   public:
    // Columns `index` of x, on `rows` rows (all of them unless told) from `first_row` on where they are dense.
    template <class Integers>
    Columns of(const Columns& x, const Integers& index, Size first_row = 0, Size rows = -1) {
        chosen_.clear();
        for (const auto j : index) {
            chosen_.push_back(x.at[j]);
            chosen_.back().values += first_row;
        }
        return {rows < 0 ? x.n : rows, Size(chosen_.size()), chosen_.data(), x.is_dense};
    }

   private:
    std::vector<Column> chosen_;
};

}  // namespace bregpath

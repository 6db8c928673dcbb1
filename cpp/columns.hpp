// Arrays as the kernels take them.
#pragma once

#include <vector>

#include "kernels.hpp"

namespace bregpath {

// (rows, columns) stored row by row -> (columns, rows) likewise: Python's (n, q) to output by output, and back.
inline void transpose(const double* from, Size rows, Size columns, double* to) {
    for (Size i = 0; i < rows; ++i)
        for (Size l = 0; l < columns; ++l) to[l * rows + i] = from[i * columns + l];
}

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

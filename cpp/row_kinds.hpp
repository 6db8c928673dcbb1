// Kinds of rows: rows with the same response that no column which has moved tells apart have the same predictor, so that
// one row with the weight of all stands for them. Indicators, as of the levels of some categories, leave few kinds.
#pragma once

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "columns.hpp"
#include "penalty.hpp"

namespace bregpath {

class RowKinds {
   public:
    // Of data without an offset, and sparse columns: kinds of the same response.
    RowKinds(const Data& data, const Columns& x)
        : rows_(data), kinds_(data), x_(x), columns_(x.at, x.at + x.k), of_row_(x.n), kinds_with_(x.k), is_told_(x.k, 0),
          gain_(kPatience * x.n) {
        for (Size i = 0; i < x.n && !has_many_; ++i) {
            const auto known = std::find(y_.begin(), y_.end(), data.y[i]);
            of_row_[i] = int32_t(known - y_.begin());
            if (known == y_.end()) add_kind(data.y[i], {});
            ++size_of_[of_row_[i]];
            has_many_ = size() > kMostResponses;
        }
        present();
    }

    Size size() const { return Size(y_.size()); }
    // The regression on kinds, a row each. Columns that were not told apart by are empty.
    const Data& data() const { return kinds_; }
    Columns columns() const { return {size(), x_.k, columns_.data(), false}; }

    // Of each row its kind, of each kind one of its rows, and the kind that it was of before some were last told apart.
    const std::vector<int32_t>& of_row() const { return of_row_; }
    const std::vector<int32_t>& origin() const { return origin_; }
    std::vector<int32_t> examples() const {
        std::vector<int32_t> rows(size());
        for (Size i = 0; i < x_.n; ++i) rows[of_row_[i]] = int32_t(i);
        return rows;
    }

    // Make kinds of what the columns tell apart; false where all is as it was.
    bool tell_apart(const Index& columns) {
        const auto is_new = [this](Size j) { return !is_told_[j]; };
        if (std::none_of(columns.begin(), columns.end(), is_new)) return false;  // as at nearly every step
        origin_.resize(size());
        std::iota(origin_.begin(), origin_.end(), 0);
        for (const Size j : columns)
            if (is_new(j)) tell_apart_by(j);
        present(), gain_ -= x_.n + kPasses * size();
        return true;
    }

    // Of sums over the rows of each kind, (q, kinds), the share of every row, (q, rows).
    void share(const double* sums, double* of_row) {
        gain_ -= x_.n;
        for (Size l = 0; l < rows_.q; ++l, sums += size(), of_row += x_.n) {
            for (Size k = 0; k < size(); ++k) by_weight_[k] = w_[k] > 0 ? sums[k] / w_[k] : 0.0;
            for (Size i = 0; i < x_.n; ++i) of_row[i] = rows_.w[i] * by_weight_[of_row_[i]];
        }
    }

    void count_gradient() { gain_ = std::min(gain_ + kPasses * (x_.n - size()), kPatience * x_.n); }
    // Whether kinds cost more than they spare, or will soon be as many as rows.
    bool is_over() const { return has_many_ || gain_ < 0; }

   private:
    using Kinds = std::vector<int32_t>;

    void add_kind(double y, std::vector<int32_t> columns) {
        child_.push_back(int32_t(size()));
        y_.push_back(y), size_of_.push_back(0), with_.push_back(0), columns_of_.push_back(std::move(columns));
    }

    // Rows with the column become a kind of their own, unless all of their kind have it.
    void tell_apart_by(Size j) {
        const Column& x = x_.at[j];
        is_told_[j] = 1;
        has_many_ = has_many_ || !x.is_indicator;
        Kinds& kinds = kinds_with_[j];
        for (Size e = 0; e < x.count; ++e) {
            const int32_t kind = of_row_[x.rows[e]];
            if (++with_[kind] == 1) kinds.push_back(kind);
        }
        for (const int32_t kind : kinds) {
            const Size rows = std::exchange(with_[kind], 0);
            if (rows == size_of_[kind]) continue;
            const int32_t child = child_[kind] = int32_t(size());
            origin_.push_back(origin_[kind]);
            add_kind(y_[kind], columns_of_[kind]);
            size_of_[kind] -= rows, size_of_[child] = rows;
            for (const int32_t c : columns_of_[kind]) kinds_with_[c].push_back(child);
        }
        for (Size e = 0; e < x.count; ++e) of_row_[x.rows[e]] = child_[of_row_[x.rows[e]]];
        for (int32_t& kind : kinds) {
            kind = std::exchange(child_[kind], kind);
            columns_of_[kind].push_back(int32_t(j));
        }
    }

    // Weights of the kinds, and data and columns that are made of them, as they are now.
    void present() {
        w_.assign(size(), 0.0), by_weight_.resize(size());
        for (Size i = 0; i < x_.n; ++i) w_[of_row_[i]] += rows_.w[i];
        kinds_.y = y_.data(), kinds_.w = w_.data();
        for (Size j = 0; j < x_.k; ++j)
            columns_[j].rows = kinds_with_[j].data(), columns_[j].count = Size(kinds_with_[j].size());
    }

    static constexpr Size kMostResponses = 64;
    static constexpr Size kPasses = 4, kPatience = 32;  // over a row: of a gradient, and what kinds may cost at first

    const Data rows_;
    Data kinds_;
    const Columns x_;
    std::vector<Column> columns_;
    std::vector<int32_t> of_row_, origin_;
    // Of each kind.
    std::vector<double> y_, w_, by_weight_;
    std::vector<Size> size_of_, with_;  // rows, and those of them with a column
    std::vector<int32_t> child_;        // of those, for a moment; else the kind itself
    std::vector<std::vector<int32_t>> columns_of_;
    std::vector<Kinds> kinds_with_;     // of each column that was told apart by
    Flags is_told_;
    bool has_many_ = false;
    Size gain_;                         // what was spared, less what it cost, in passes over a row
};

}  // namespace bregpath

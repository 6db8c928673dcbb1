// Dense columns once more, as gradients read them: see Panels in kernels.hpp.
#pragma once

#include <algorithm>
#include <vector>

#include "aligned.hpp"
#include "kernels.hpp"
#include "penalty.hpp"

namespace bregpath {

// Of the columns that have moved, each copied when it first does.
class PanelCopy {
   public:
    explicit PanelCopy(const Columns& x)
        : x_(x), n_(x.n), panels_((x.n + kPanelRows - 1) / kPanelRows), place_(x.k, -1) {}

    // Some of the columns, valid until the next choice.
    Panels of(const Index& index) {
        const Size added = std::count_if(index.begin(), index.end(), [this](auto j) { return place_[j] < 0; });
        if (used_ + added > room_) grow(used_ + added);
        chosen_.clear();
        for (const auto j : index) {
            if (place_[j] < 0) add(j, x_.at[j].values);
            chosen_.push_back(place_[j]);
        }
        return {n_, Size(chosen_.size()), room_ * kPanelRows, numbers_.data(), chosen_.data()};
    }

   private:
    static constexpr Size kWholeNumbers = 1 << 22;  // up to which all columns have room: what is not written takes no memory

    void add(Size j, const double* values) {
        place_[j] = int32_t(used_++);
        double* to = numbers_.data() + place_[j] * kPanelRows;
        for (Size i = 0; i < n_; i += kPanelRows, to += room_ * kPanelRows) {
            const Size m = std::min(kPanelRows, n_ - i);
            std::copy_n(values + i, m, to), std::fill(to + m, to + kPanelRows, 0.0);
        }
    }

    void grow(Size least) {
        const Size all = x_.k, room = all * n_ <= kWholeNumbers ? all : std::min(all, least + least / 2 + 8);
        Aligned larger(panels_ * room * kPanelRows);
        for (Size i = 0; i < panels_; ++i)
            std::copy_n(numbers_.data() + i * room_ * kPanelRows, used_ * kPanelRows, larger.data() + i * room * kPanelRows);
        numbers_.swap(larger), room_ = room;
    }

    Columns x_;
    Size n_, panels_, used_ = 0, room_ = 0;
    std::vector<int32_t> place_, chosen_;
    Aligned numbers_;
};

}  // namespace bregpath

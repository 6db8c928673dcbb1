// A symmetric matrix over those of many items that were ever used: small and contiguous, it grows as they come.
#pragma once

#include <algorithm>
#include <vector>

#include "aligned.hpp"
#include "columns.hpp"

namespace bregpath {

class CompactGram {
   public:
    explicit CompactGram(Size items) : position_(items, -1) {}

    const std::vector<int32_t>& used() const { return used_; }
    Size position(Size item) const { return position_[item]; }
    const double* matrix() const { return matrix_.data(); }
    Size stride() const { return room_; }  // of its columns, a multiple of eight

    void forget() {
        for (const int32_t item : used_) position_[item] = -1;
        used_.clear();
    }

    // Take in the items that are new; set() is to follow for them and all in use.
    template <class Items>
    void add(const Items& items) {
        const Size old = Size(used_.size());
        for (const auto item : items) {
            if (position_[item] >= 0) continue;
            position_[item] = int32_t(used_.size());
            used_.push_back(int32_t(item));
        }
        if (Size(used_.size()) <= room_) return;
        // Columns begin at the same place of a cache line.
        const Size room = (Size(used_.size() + used_.size() / 2) + 63) & ~Size(7);
        Aligned larger(room * room, 0.0);
        for (Size i = 0; i < old; ++i) std::copy_n(&matrix_[i * room_], old, &larger[i * room]);
        matrix_.swap(larger), room_ = room;
    }

    void set(Size i, Size j, double entry) { matrix_[i * room_ + j] = matrix_[j * room_ + i] = entry; }

    // The items, all in use, of which product() takes the coefficients.
    template <class Items>
    void choose(const Items& items) {
        columns_.clear();
        for (const auto item : items) columns_.push_back({&matrix_[position_[item] * room_]});
    }

    // Take in the items that are new with their entries of a large matrix, and choose the items.
    template <class Items>
    void choose_from(const double* large, Size stride, const Items& items) {
        Size known = Size(used_.size());
        add(items);
        for (; known < Size(used_.size()); ++known)
            for (Size i = 0; i <= known; ++i) set(known, i, large[used_[known] * stride + used_[i]]);
        choose(items);
    }

    // The matrix times coefficients of the chosen items, at the position of each item in use.
    const std::vector<double>& product(const Kernels* kernels, const double* v) {
        product_.resize(used_.size());
        multiply(kernels, columns_, Size(used_.size()), 1, v, product_.data());
        return product_;
    }

   private:
    std::vector<int32_t> used_, position_;
    Aligned matrix_;
    std::vector<double> product_;
    Size room_ = 0;
    std::vector<Column> columns_;
};

}  // namespace bregpath

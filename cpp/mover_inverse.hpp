// The inverse of the Hessian of squared loss, with a shift, over the coordinates that move, the intercept among them: small,
// contiguous, in their order, padded to multiples of eight with zeros. Few of them come or go from step to step, and each changes
// the inverse by the square of one vector.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "aligned.hpp"
#include "kernels.hpp"
#include "vectors.hpp"

namespace bregpath {

class MoverInverse {
   public:
    // Of m columns, from their centred Gram matrix and means; coordinate m is the intercept.
    MoverInverse(const double* gram, Size stride, const double* mean, Size m)
        : gram_(gram), mean_(mean), gram_stride_(stride), m_(m), curvatures_(m + 1, -1.0) {}

    Size size() const { return padded(Size(items_.size())); }
    const double* matrix() const { return matrix_.data(); }
    Size stride() const { return room_; }
    const double* means() const { return means_.data(); }  // 1 of the intercept
    double shift() const { return shift_; }

    // The sum of the curvatures of some coordinates, of which rows of the Gram matrix are there.
    double sum_of_curvatures(const std::vector<Size>& movers) {
        double sum = 0;
        for (const Size j : movers) {
            if (curvatures_[j] < 0) curvatures_[j] = entry(j, j);
            sum += curvatures_[j];
        }
        return sum;
    }

    // Take these coordinates, in ascending order, of which rows of the Gram matrix are there, and a shift.
    void follow(const Kernels* kernels, const std::vector<Size>& movers, double shift) {
        kernels_ = kernels;
        if (shift != wanted_ || changes_ > kMostChanges) return begin(movers, shift);
        for (Size i = Size(items_.size()), next = Size(movers.size()); i-- > 0;) {
            while (next > 0 && movers[next - 1] > items_[i]) --next;
            if (next == 0 || movers[next - 1] != items_[i]) erase(i);
        }
        if (Size(movers.size()) > Size(items_.size()) + kFew) return begin(movers, shift);
        make_room(Size(movers.size()));
        for (Size i = 0; i < Size(movers.size()); ++i)
            if ((i == Size(items_.size()) || items_[i] != movers[i]) && !insert(i, movers[i])) return begin(movers, shift);
    }

   private:
    static constexpr Size kFew = 8;           // coordinates at a time, beyond which to begin anew is cheaper
    static constexpr Size kMostChanges = 64;  // until rounding has added up
    static Size padded(Size size) { return (size + 7) & ~Size(7); }

    double mean_of(Size j) const { return j < m_ ? mean_[j] : 1.0; }

    double entry(Size j, Size i) const {
        return (j < m_ && i < m_ ? gram_[j * gram_stride_ + i] : 0.0) + mean_of(j) * mean_of(i);
    }

    double* row(Size i) { return &matrix_[i * room_]; }

    void begin(const std::vector<Size>& movers, double shift) {
        const Size k = Size(movers.size());
        items_.clear(), make_room(k), items_ = movers;
        changes_ = 0, wanted_ = shift;
        for (Size i = 0; i < k; ++i) means_[i] = mean_of(items_[i]);
        std::fill(means_.begin() + k, means_.end(), 0.0);
        scratch_.resize(sweep_room(k));
        shift_ = shift;
        while (!invert(k) && shift_ < std::numeric_limits<double>::max()) shift_ *= 16;  // it was rounding
    }

    bool invert(Size k) {
        std::fill(matrix_.begin(), matrix_.end(), 0.0);
        for (Size i = 0; i < k; ++i) {
            for (Size j = i; j < k; ++j) row(i)[j] = entry(items_[i], items_[j]);
            row(i)[i] += shift_;
        }
        if (kernels_->sweep(k, matrix_.data(), room_, true, scratch_.data()) == -kInfinity) return false;
        for (Size i = 0; i < k; ++i)
            for (Size j = 0; j < i; ++j) row(i)[j] = row(j)[i];
        return true;
    }

    void erase(Size at) {
        const Size last = Size(items_.size()) - 1;
        column_.assign(row(at), row(at) + size());
        kernels_->change_by_square(size(), -1 / column_[at], column_.data(), matrix_.data(), room_);
        items_.erase(items_.begin() + at), ++changes_;
        for (Size i = 0; i <= last; ++i) {
            if (i >= at && i < last) std::copy_n(row(i + 1), last + 1, row(i));
            std::copy(row(i) + at + 1, row(i) + last + 1, row(i) + at);
            row(i)[last] = 0;
        }
        std::fill_n(row(last), last + 1, 0.0);
        std::copy(means_.begin() + at + 1, means_.begin() + last + 1, means_.begin() + at);
        means_[last] = 0;
    }

    // Whether it could be done: not where the others all but make it up.
    bool insert(Size at, Size item) {
        const Size last = Size(items_.size());
        products_.assign(size(), 0.0), column_.assign(room_, 0.0);
        for (Size i = 0; i < last; ++i) products_[i] = entry(item, items_[i]);
        kernels_->symmetric_product(size(), matrix_.data(), room_, products_.data(), column_.data());
        const double pivot = curvatures_[item] + shift_ - dot(products_.data(), column_.data(), last);
        if (!(pivot > 0.5 * shift_)) return false;
        std::copy_backward(column_.begin() + at, column_.begin() + last, column_.begin() + last + 1);
        column_[at] = -1;
        items_.insert(items_.begin() + at, item), ++changes_;
        for (Size i = last; i > at; --i) std::copy_n(row(i - 1), last, row(i));
        for (Size i = 0; i <= last; ++i) {
            std::copy_backward(row(i) + at, row(i) + last, row(i) + last + 1);
            row(i)[at] = row(at)[i] = 0;
        }
        kernels_->change_by_square(size(), 1 / pivot, column_.data(), matrix_.data(), room_);
        std::copy_backward(means_.begin() + at, means_.begin() + last, means_.begin() + last + 1);
        means_[at] = mean_of(item);
        return true;
    }

    void make_room(Size count) {
        if (count <= room_) return;
        const Size kept = Size(items_.size()), old = room_, room = (count + count / 2 + 63) & ~Size(7);
        Aligned larger(room * room, 0.0);
        for (Size i = 0; i < kept; ++i) std::copy_n(matrix_.data() + i * old, kept, &larger[i * room]);
        matrix_.swap(larger), means_.resize(room, 0.0), room_ = room;
    }

    const Kernels* kernels_ = nullptr;
    const double *gram_, *mean_;
    Size gram_stride_, m_;
    std::vector<double> curvatures_;  // of all coordinates, as far as somebody asked
    std::vector<Size> items_;
    Aligned matrix_, column_, products_, scratch_;
    std::vector<double> means_;
    Size room_ = 0, changes_ = 0;
    double shift_ = 0, wanted_ = -1;
};

}  // namespace bregpath

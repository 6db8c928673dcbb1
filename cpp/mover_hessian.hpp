// The Hessian of squared loss over the coordinates that move, the intercept among them: small, contiguous, in their order, padded
// to multiples of eight with zeros. Few of them come or go from step to step.
#pragma once

#include <algorithm>
#include <vector>

#include "aligned.hpp"
#include "kernels.hpp"

namespace bregpath {

class MoverHessian {
   public:
    // Of m columns, from their centred Gram matrix and means; coordinate m is the intercept.
    MoverHessian(const double* gram, Size stride, const double* mean, Size m) : gram_(gram), mean_(mean), gram_stride_(stride), m_(m) {}

    Size size() const { return (Size(items_.size()) + 7) & ~Size(7); }
    const double* matrix() const { return matrix_.data(); }
    Size stride() const { return room_; }
    const double* means() const { return means_.data(); }  // 1 of the intercept

    // Take these coordinates, in ascending order; rows of the Gram matrix of those that are new are there.
    void follow(const std::vector<Size>& movers) {
        for (Size i = Size(items_.size()), next = Size(movers.size()); i-- > 0;) {
            while (next > 0 && movers[next - 1] > items_[i]) --next;
            if (next == 0 || movers[next - 1] != items_[i]) erase(i);
        }
        make_room(Size(movers.size()));
        for (Size i = 0; i < Size(movers.size()); ++i)
            if (i == Size(items_.size()) || items_[i] != movers[i]) insert(i, movers[i]);
    }

   private:
    double mean_of(Size j) const { return j < m_ ? mean_[j] : 1.0; }

    double entry(Size j, Size i) const {
        return (j < m_ && i < m_ ? gram_[j * gram_stride_ + i] : 0.0) + mean_of(j) * mean_of(i);
    }

    double* row(Size i) { return &matrix_[i * room_]; }

    void erase(Size at) {
        const Size last = Size(items_.size()) - 1;
        items_.erase(items_.begin() + at);
        for (Size i = 0; i <= last; ++i) {
            if (i >= at && i < last) std::copy_n(row(i + 1), last + 1, row(i));
            std::copy(row(i) + at + 1, row(i) + last + 1, row(i) + at);
            row(i)[last] = 0;
        }
        std::fill_n(row(last), last + 1, 0.0);
        std::copy(means_.begin() + at + 1, means_.begin() + last + 1, means_.begin() + at);
        means_[last] = 0;
    }

    void insert(Size at, Size item) {
        const Size last = Size(items_.size());
        items_.insert(items_.begin() + at, item);
        for (Size i = last; i > at; --i) std::copy_n(row(i - 1), last, row(i));
        for (Size i = 0; i <= last; ++i) {
            std::copy_backward(row(i) + at, row(i) + last, row(i) + last + 1);
            row(i)[at] = row(at)[i] = 0;
        }
        for (Size i = 0; i <= last; ++i) row(i)[at] = row(at)[i] = entry(item, items_[i]);
        std::copy_backward(means_.begin() + at, means_.begin() + last, means_.begin() + last + 1);
        means_[at] = mean_of(item);
    }

    void make_room(Size count) {
        if (count <= room_) return;
        const Size old = room_, room = (count + count / 2 + 63) & ~Size(7);
        Aligned larger(room * room, 0.0);
        for (Size i = 0; i < old; ++i) std::copy_n(row(i), old, &larger[i * room]);
        matrix_.swap(larger), means_.resize(room, 0.0), room_ = room;
    }

    const double *gram_, *mean_;
    Size gram_stride_, m_;
    std::vector<Size> items_;
    Aligned matrix_;
    std::vector<double> means_;
    Size room_ = 0;
};

}  // namespace bregpath

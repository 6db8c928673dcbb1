// The inverse and the determinant of a positive definite matrix, part of kernels_isa.cpp and under its rule: see kernels.hpp.
//
// A sweep of some pivots K turns A_KK into -A_KK^-1, A_KJ into A_KK^-1 A_KJ, and every other A_IJ into
// A_IJ - A_IK A_KK^-1 A_KJ. After a sweep of all of them A has become -A^-1, and its determinant is the product of those of
// the A_KK (Goodnight 1979). So there is one kind of work, and it is a product.
#pragma once

#include "moment_kernels.hpp"

namespace {

using bregpath::kPivots;

// Rows are padded to lines, the part from the diagonal on counts. Those of the pivots, and what they add to the others,
// lie line by line of columns, kPivots rows each.
class Sweeps {
   public:
    Sweeps(Size p, double* room)
        : p_(p), lines_((p + 7) / 8), rows_(reinterpret_cast<Eight*>(room)), pivots_(rows_ + 8 * lines_ * lines_),
          change_(pivots_ + lines_ * kPivots) {}

    void read(const double* matrix, Size stride) {
        for (Size l = 0; l < 8 * lines_ * lines_; ++l) clear(rows_[l]);
        for (Size i = 0; i < p_; ++i)
            for (Size j = i; j < p_; ++j) row(i)[j] = matrix[i * stride + j];
    }

    void write_inverse(double* matrix, Size stride) {
        for (Size i = 0; i < p_; ++i)
            for (Size j = i; j < p_; ++j) matrix[i * stride + j] = -row(i)[j];
    }

    // The pivots from k on, and with them the rows before if there is to be an inverse; adds to the logarithm of the determinant.
    bool sweep(Size k, bool inverse, double* log_determinant) {
        const Size count = p_ - k < kPivots ? p_ - k : kPivots, first = k / 8, last = (k + count + 7) / 8;
        read_pivots(k, count, inverse);
        if (!sweep_square(pivots_ + first * kPivots, count, log_determinant)) return false;
        const Size before = inverse ? first : 0;
        for (Size e = 0; e < before; ++e) make_change(e, first, last, count);
        for (Size e = last; e < lines_; ++e) make_change(e, first, last, count);
        for (Size e = 0; e < before; ++e) change_rows(e, e, first, count), change_rows(e, last, lines_, count);
        for (Size e = last; e < lines_; ++e) change_rows(e, e, lines_, count);
        if (inverse) write_pivots(k, count, last);
        return true;
    }

   private:
    double* row(Size i) { return reinterpret_cast<double*>(rows_ + i * lines_); }
    // Number b of a column in lines of columns.
    static double& at(Eight* lines, Size b, Size j) { return reinterpret_cast<double*>(lines + j / 8 * kPivots + b)[j % 8]; }

    void read_pivots(Size k, Size count, bool before) {
        for (Size b = 0; b < count; ++b)
            for (Size e = k / 8; e < lines_; ++e) pivots_[e * kPivots + b] = rows_[(k + b) * lines_ + e];
        for (Size j = before ? 0 : k; j < k + count; ++j)
            for (Size b = j < k ? 0 : j - k + 1; b < count; ++b) at(pivots_, b, j) = row(j)[k + b];
    }

    // D becomes -D^-1, one pivot after the other.
    static bool sweep_square(Eight* d, Size count, double* log_determinant) {
        const Size lines = (count + 7) / 8;
        for (Size q = 0; q < count; ++q) {
            const double pivot = at(d, q, q);
            if (!(pivot > 0)) return false;
            *log_determinant += ::log(pivot);
            at(d, q, q) = 0;
            for (Size e = 0; e < lines; ++e) d[e * kPivots + q] *= 1 / pivot;
            for (Size b = 0; b < count; ++b) {
                if (b == q) continue;
                const double factor = at(d, b, q);
                at(d, b, q) = 0;
                for (Size e = 0; e < lines; ++e) d[e * kPivots + b].add(-factor, d[e * kPivots + q]);
                at(d, b, q) = factor / pivot;
            }
            at(d, q, q) = -1 / pivot;
        }
        return true;
    }

    // -D^-1 times what the pivots have in a line of columns.
    void make_change(Size e, Size first, Size last, Size count) {
        for (Size b = 0; b < kPivots; ++b) clear(change_[e * kPivots + b]);
        for (Size h = first; h < last; ++h)
            for (Size l = 0; l < 8; l += kTall)
                add_square<1>(reinterpret_cast<double*>(pivots_ + h * kPivots) + l, pivots_ + e * kPivots, count, 0,
                              reinterpret_cast<double*>(change_ + e * kPivots + 8 * (h - first) + l), 8);
    }

    // Some lines of eight rows.
    void change_rows(Size of, Size e, Size end, Size count) {
        for (; e + kStripLines <= end; e += kStripLines) change_tile<kStripLines>(of, e, count);
        for (; e < end; ++e) change_tile<1>(of, e, count);
    }

    template <int lines>
    void change_tile(Size of, Size e, Size count) {
        for (Size l = 0; l < 8; l += kTall)
            add_square<lines>(reinterpret_cast<double*>(pivots_ + of * kPivots) + l, change_ + e * kPivots, count, kPivots,
                              row(8 * of + l) + 8 * e, 8 * lines_);
    }

    void write_pivots(Size k, Size count, Size last) {
        for (Size j = 0; j < k; ++j)
            for (Size b = 0; b < count; ++b) row(j)[k + b] = -at(change_, b, j);
        for (Size b = 0; b < count; ++b) {
            for (Size j = k + b; j < k + count; ++j) row(k + b)[j] = at(pivots_, b, j);
            for (Size j = 8 * last; j < p_; ++j) row(k + b)[j] = -at(change_, b, j);
        }
    }

    const Size p_, lines_;
    Eight *rows_, *pivots_, *change_;
};

double sweep(Size p, double* matrix, Size stride, bool inverse, double* room) {
    Sweeps sweeps(p, room);
    sweeps.read(matrix, stride);
    double log_determinant = 0;
    for (Size k = 0; k < p; k += kPivots)
        if (!sweeps.sweep(k, inverse, &log_determinant)) return -INFINITY;
    if (inverse) sweeps.write_inverse(matrix, stride);
    return log_determinant;
}

}  // namespace

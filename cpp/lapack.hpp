// LAPACK and BLAS for symmetric matrices of doubles, by the addresses that SciPy hands over: nothing is linked.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels.hpp"

namespace bregpath {

// Matrices of which the lower triangle counts, column after column, `stride` apart.
class Lapack {
   public:
    using Triangular = void(char* part, int* n, double* a, int* lda, int* info);
    using Solve = void(char* side, char* part, char* transposed, char* diagonal, int* m, int* n, double* alpha,
                       double* a, int* lda, double* b, int* ldb);
    using Symmetric = void(char* side, char* part, int* m, int* n, double* alpha, double* a, int* lda, double* b,
                           int* ldb, double* beta, double* c, int* ldc);
    using General = void(char* of_a, char* of_b, int* m, int* n, int* k, double* alpha, double* a, int* lda, double* b,
                         int* ldb, double* beta, double* c, int* ldc);

    Lapack(Triangular* potrf, Triangular* potri, Solve* trsm, Symmetric* symm, General* gemm)
        : potrf_(potrf), potri_(potri), trsm_(trsm), symm_(symm), gemm_(gemm) {}

    // The Cholesky factor in the place of a matrix; false where it is not positive definite.
    bool factor(Size p, double* matrix, Size stride) const { return in_place(potrf_, p, matrix, stride); }

    // The inverse W in the place of a Cholesky factor L. By halves, so that products do most of the work, which potri
    // leaves to slower routines: with B = L_21 L_11^-1, W_21 = -W_22 B and W_11 = (L_11 L_11')^-1 - B' W_21.
    bool invert(Size p, double* factor, Size stride) {
        if (p <= kSmall) return in_place(potri_, p, factor, stride);
        const Size first = p / 2, second = p - first;
        double *lower = factor + first, *last = lower + first * stride;
        int n = int(first), m = int(second), apart = int(stride);
        char left[] = "L", right[] = "R", plain[] = "N", transposed[] = "T", part[] = "L";
        double one = 1, minus = -1, zero = 0;
        trsm_(right, part, plain, plain, &m, &n, &one, factor, &apart, lower, &apart);
        if (!invert(first, factor, stride) || !invert(second, last, stride)) return false;
        copy_.resize(std::max(copy_.size(), size_t(first * second)));
        for (Size j = 0; j < first; ++j) std::copy_n(lower + j * stride, second, &copy_[j * second]);
        symm_(left, part, &m, &n, &minus, last, &apart, copy_.data(), &m, &zero, lower, &apart);
        for (Size j = 0; j < first; j += kSmall) {  // some columns at once, from the diagonal on
            int width = int(std::min(first - j, kSmall)), height = int(first - j);
            gemm_(transposed, plain, &height, &width, &m, &minus, &copy_[j * second], &m, lower + j * stride, &apart,
                  &one, factor + j * (stride + 1), &apart);
        }
        return true;
    }

    // out = full * symmetric, all of p columns of p numbers.
    void multiply(Size p, const double* full, const double* symmetric, double* out) const {
        char side[] = "R", part[] = "L";
        int size = int(p);
        double one = 1, zero = 0;
        symm_(side, part, &size, &size, &one, const_cast<double*>(symmetric), &size, const_cast<double*>(full), &size,
              &zero, out, &size);
    }

   private:
    static constexpr Size kSmall = 48;

    static bool in_place(Triangular* routine, Size p, double* matrix, Size stride) {
        char part = 'L';
        int size = int(p), apart = int(stride), info = 0;
        routine(&part, &size, matrix, &apart, &info);
        return info == 0;
    }

    Triangular *potrf_, *potri_;
    Solve* trsm_;
    Symmetric* symm_;
    General* gemm_;
    std::vector<double> copy_;
};

}  // namespace bregpath

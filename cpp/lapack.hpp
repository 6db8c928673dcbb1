// LAPACK and BLAS for symmetric matrices of doubles, by the addresses that SciPy hands over: nothing is linked.
#pragma once

#include "kernels.hpp"

namespace bregpath {

// Matrices (p, p) of which the lower triangle counts, column after column.
struct Lapack {
    using Triangular = void(char* part, int* n, double* a, int* lda, int* info);
    using Symmetric = void(char* side, char* part, int* m, int* n, double* alpha, double* a, int* lda, double* b,
                           int* ldb, double* beta, double* c, int* ldc);
    Triangular *potrf = nullptr, *potri = nullptr;
    Symmetric* symm = nullptr;

    // The Cholesky factor in the place of a matrix; false where it is not positive definite. Columns begin `stride` apart.
    bool factor(Size p, double* matrix, Size stride) const { return in_place(potrf, p, matrix, stride); }

    // The inverse in the place of a Cholesky factor.
    bool invert(Size p, double* factor, Size stride) const { return in_place(potri, p, factor, stride); }

    // out = full * symmetric.
    void multiply(Size p, const double* full, const double* symmetric, double* out) const {
        char side = 'R', part = 'L';
        int size = int(p);
        double one = 1, zero = 0;
        symm(&side, &part, &size, &size, &one, const_cast<double*>(symmetric), &size, const_cast<double*>(full), &size,
             &zero, out, &size);
    }

   private:
    static bool in_place(Triangular* routine, Size p, double* matrix, Size stride) {
        char part = 'L';
        int size = int(p), apart = int(stride), info = 0;
        routine(&part, &size, matrix, &apart, &info);
        return info == 0;
    }
};

}  // namespace bregpath

// Eigenvectors of small tridiagonal matrices, part of kernels_isa.cpp and under its rule: see kernels.hpp.
#pragma once

#include "row_losses.hpp"

namespace {

// Implicit QL steps. Both diagonals have k places; what is in `off` is lost. There is no care for numbers whose squares overflow
// or vanish, which curvatures are not: hypot() is slow.
void diagonalise(Size k, double* diagonal, double* off, double* axes) {
    constexpr double epsilon = 2.220446049250313e-16, tiny = 1e-290;  // which has an inverse
    clear(axes, k * k);
    for (Size i = 0; i < k; ++i) axes[i * k + i] = 1.0;
    off[k - 1] = 0;
    for (Size first = 0; first < k; ++first) {
        while (true) {
            Size last = first;  // of a part that is cut off from the rest
            while (last + 1 < k && absolute(off[last]) > epsilon * (absolute(diagonal[last]) + absolute(diagonal[last + 1])))
                ++last;
            if (last == first) break;
            double g = (diagonal[first + 1] - diagonal[first]) / (2 * off[first]), r = sqrt(g * g + 1.0);
            g = diagonal[last] - diagonal[first] + off[first] / (g + (g < 0 ? -r : r));  // shifted
            double s = 1, c = 1, p = 0;
            Size i = last - 1;
            for (; i >= first; --i) {
                const double f = s * off[i], b = c * off[i], square = f * f + g * g;
                off[i + 1] = r = square > tiny ? sqrt(square) : 0.0;
                if (r == 0) {
                    diagonal[i + 1] -= p, off[last] = 0;
                    break;
                }
                const double inverse = (1.0 / square) * r;  // does not wait for the root as 1 / r would
                s = f * inverse, c = g * inverse, g = diagonal[i + 1] - p;
                r = (diagonal[i] - g) * s + 2 * c * b;
                p = s * r, diagonal[i + 1] = g + p, g = c * r - b;
                double *left = axes + i * k, *right = left + k;
#pragma omp simd
                for (Size row = 0; row < k; ++row) {
                    const double x = left[row], y = right[row];
                    right[row] = s * x + c * y, left[row] = c * x - s * y;
                }
            }
            if (r == 0 && i >= first) continue;
            diagonal[first] -= p, off[first] = g, off[last] = 0;
        }
    }
}

}  // namespace

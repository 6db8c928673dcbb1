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
            double s = 1, c = 1, p = 0, g_before;
            Size i = last - 1;
            for (; i >= first; --i) {
                const double f = s * off[i], b = c * off[i], square = f * f + g * g;
                off[i + 1] = r = square > tiny ? sqrt(square) : 0.0;
                if (r == 0) {
                    diagonal[i + 1] -= p, off[last] = 0;
                    break;
                }
                // Nothing waits for the root but the next f and b: what is asked for is arranged so.
                const double share = 1.0 / square, inverse = share * r;
                r = (diagonal[i] - (g_before = diagonal[i + 1] - p)) * f + 2 * g * b;
                p = f * r * share, diagonal[i + 1] = g_before + p;
                s = f * inverse, c = g * inverse, g = g * r * share - b;
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

// Eigenvectors of small tridiagonal matrices, part of kernels_isa.cpp and under its rule: see kernels.hpp.
#pragma once

#include "eight.hpp"
#include "row_losses.hpp"

namespace {

// Implicit QL steps. Both diagonals have k places; what is in `off` is lost. Eigenvectors lie in lines of eight numbers, with zeros
// behind them. There is no care for numbers whose squares overflow or vanish, which curvatures are not: hypot() is slow.
template <int lines>
void diagonalise_lines(Size k, double* diagonal, double* off, double* axes) {
    constexpr double epsilon = 2.220446049250313e-16, tiny = 1e-290;  // which has an inverse
    constexpr Size stride = 8 * lines;
    const auto axis = [&](Size i) { return reinterpret_cast<Eight*>(axes + i * stride); };
    clear(axes, k * stride);
    for (Size i = 0; i < k; ++i) axes[i * stride + i] = 1.0;
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
            Eight turned[lines];  // the axis that is turned again next
            for (int l = 0; l < lines; ++l) turned[l] = axis(last)[l];
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
                for (int l = 0; l < lines; ++l) {
                    Eight next = axis(i)[l], done = next;
                    done *= s, done.add(c, turned[l]);
                    next *= c, next.add(-s, turned[l]);
                    axis(i + 1)[l] = done, turned[l] = next;
                }
            }
            for (int l = 0; l < lines; ++l) axis(i + 1)[l] = turned[l];
            if (r == 0 && i >= first) continue;
            diagonal[first] -= p, off[first] = g, off[last] = 0;
        }
    }
}

void diagonalise(Size k, double* diagonal, double* off, double* axes) {
    static_assert(bregpath::kMostDirections == 32);
    if (k <= 8)
        diagonalise_lines<1>(k, diagonal, off, axes);
    else if (k <= 16)
        diagonalise_lines<2>(k, diagonal, off, axes);
    else if (k <= 24)
        diagonalise_lines<3>(k, diagonal, off, axes);
    else
        diagonalise_lines<4>(k, diagonal, off, axes);
}

}  // namespace

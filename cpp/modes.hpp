// Few exponentials instead of that of a matrix: the small problems of Lanczos' method.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels.hpp"

namespace bregpath {

// Without the care for numbers whose squares overflow or vanish, which curvatures are not: std::hypot is slow.
inline double hypotenuse(double x, double y) { return std::sqrt(x * x + y * y); }

// Eigenvalues of a symmetric tridiagonal matrix into its `diagonal`, by implicit QL steps; `off` is lost. `axes` has rows of
// an orthogonal matrix, one after the other, and becomes their products with the eigenvectors.
inline void diagonalise(std::vector<double>& diagonal, std::vector<double>& off, double* axes, Size rows) {
    const Size k = Size(diagonal.size());
    off.resize(size_t(k));
    off[k - 1] = 0;
    for (Size first = 0; first < k; ++first) {
        while (true) {
            Size last = first;  // of a part that is cut off from the rest
            while (last + 1 < k && std::abs(off[last]) > std::numeric_limits<double>::epsilon() *
                                                             (std::abs(diagonal[last]) + std::abs(diagonal[last + 1])))
                ++last;
            if (last == first) break;
            double g = (diagonal[first + 1] - diagonal[first]) / (2 * off[first]), r = hypotenuse(g, 1.0);
            g = diagonal[last] - diagonal[first] + off[first] / (g + std::copysign(r, g));  // shifted
            double s = 1, c = 1, p = 0;
            Size i = last - 1;
            for (; i >= first; --i) {
                const double f = s * off[i], b = c * off[i];
                off[i + 1] = r = hypotenuse(f, g);
                if (r == 0) {
                    diagonal[i + 1] -= p, off[last] = 0;
                    break;
                }
                s = f / r, c = g / r, g = diagonal[i + 1] - p;
                r = (diagonal[i] - g) * s + 2 * c * b;
                p = s * r, diagonal[i + 1] = g + p, g = c * r - b;
                for (Size row = 0; row < rows; ++row) {
                    double *x = axes + row * k + i, right = x[1];
                    x[1] = s * x[0] + c * right, x[0] = c * x[0] - s * right;
                }
            }
            if (r == 0 && i >= first) continue;
            diagonal[first] -= p, off[first] = g, off[last] = 0;
        }
    }
}

// The integral of exp(-rate tau) over its value at rate 0, and that of the integral.
struct Decay {
    double change, past;

    Decay(double rate, double tau) {
        const double x = rate * tau, fall = -std::expm1(-x);
        change = x > 0 ? fall / x : 1.0;
        past = x < kSeries ? series(x) : (x - fall) / (x * x);
        change *= tau, past *= tau * tau;
    }

   private:
    static constexpr double kSeries = 0.5;
    static constexpr int kTerms = 14;

    static double series(double x) {
        double sum = 1;
        for (int k = kTerms; k > 2; --k) sum = 1 - sum * x / k;
        return 0.5 * sum;
    }
};

}  // namespace bregpath

// Few exponentials instead of that of a matrix: the small problems of Lanczos' method.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels.hpp"

namespace bregpath {

// What is left of exp(-rate tau), its integral, and that of the integral.
struct Decay {
    double left, change, past;

    Decay(double rate, double tau) {
        const double x = rate * tau, fall = x < kSeries ? -std::expm1(-x) : 1 - std::exp(-x);
        left = x < kSeries ? 1 - fall : std::exp(-x);
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

// A bound from below of the corner of what Decay::past, at kappa times its eigenvalues, makes of a tridiagonal matrix. The corner
// is the product of `off` times a divided difference, which is a mean of derivatives over all means of eigenvalues. These are
// convex functions, so that they are at least those at the mean of all means, the one of the diagonal; and what is left of tau
// falls faster where tau is taken to be shorter. All terms of the series are positive: any number of them will do, and no more
// are added once there is enough.
inline double least_corner(const std::vector<double>& diagonal, const std::vector<double>& off, double kappa, double tau,
                           double enough) {
    constexpr double kReach = 48;  // decay beyond which little is added
    const double k = double(diagonal.size()), mean = std::accumulate(diagonal.begin(), diagonal.end(), 0.0) / k;
    const double all = kappa * tau * mean, x = std::min(all, kReach), part = x < all ? tau * x / all : tau;
    double corner = 0.5 * tau * part * std::exp(-x), place = 3, term = 1, series = 1;
    for (const double side : off) corner *= kappa * part * side / place++;
    for (double n = 1; n < x + k && corner * series <= enough; ++n) term *= x / (k + 1 + n), series += (n + 1) * term;
    return corner * series;
}

// Where a function that is at most zero at `low` and above it at `high` gets there: false position, in which an end that stays
// counts half.
template <class Function>
double first_crossing(Function beyond, double low, double high, Size max_rounds, double rounding) {
    double at_low = std::min(beyond(low), 0.0), at_high = beyond(high);
    int side = 0;
    for (Size round = 0; round < max_rounds; ++round) {
        double tau = high - at_high * (high - low) / (at_high - at_low);
        if (!(low < tau && tau < high)) tau = 0.5 * (low + high);
        const double at = beyond(tau);
        if (at >= 0) {
            high = tau, at_high = at, at_low *= side > 0 ? 0.5 : 1.0, side = 1;
        } else {
            low = tau, at_low = at, at_high *= side < 0 ? 0.5 : 1.0, side = -1;
        }
        if (at == 0 || high - low <= rounding * high) break;
    }
    return high;
}

}  // namespace bregpath

// Few exponentials instead of that of a matrix: the small problems of Lanczos' method.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels.hpp"

namespace bregpath {

// A bound from below of the corner of what Kernels::decay calls `past`, at kappa times its eigenvalues, makes of a
// tridiagonal matrix. The corner is the product of `off` times a divided difference, which is the mean of a derivative over
// all means of eigenvalues with weights that are equally likely. Of such means the first three moments are known, and the sum
// over two points that has the same moments is no larger, since the derivatives of even order of what decays are positive.
class LeastCorner {
   public:
    LeastCorner(const std::vector<double>& diagonal, const std::vector<double>& off, double kappa, double tau)
        : k_(double(diagonal.size())), kappa_(kappa), tau_(tau), off_(off) {
        const double mean = std::accumulate(diagonal.begin(), diagonal.end(), 0.0) / k_;
        double squares = 0, cubes = 0;  // of the eigenvalues less their mean
        for (size_t i = 0; i < diagonal.size(); ++i) {
            const double d = diagonal[i] - mean;
            squares += d * d, cubes += d * d * d;
            if (i == off.size()) continue;
            squares += 2 * off[i] * off[i], cubes += 3 * off[i] * off[i] * (d + diagonal[i + 1] - mean);
        }
        const double variance = squares / (k_ * (k_ + 1)), width = std::sqrt(variance);
        const double skew = variance > 0 ? 2 * cubes / (k_ * (k_ + 1) * (k_ + 2)) / (variance * width) : 0.0;
        const double root = std::sqrt(1 + 0.25 * skew * skew);
        low_ = std::max(mean + width * (0.5 * skew - root), 0.0), high_ = mean + width * (0.5 * skew + root);
        share_ = 0.5 * (1 + 0.5 * skew / root);
    }

    // The bound, or a part of it that is more than enough.
    double value(double enough) const {
        const double low = share_ * at(low_, enough / share_);
        return low > enough ? low : low + (1 - share_) * at(high_, enough / (1 - share_));
    }

   private:
    // With all eigenvalues there. What is left of tau falls faster where tau is taken to be shorter; all terms of the series are
    // positive: any number of them will do, and no more are added once there is enough.
    double at(double mean, double enough) const {
        constexpr double kReach = 48;  // decay beyond which little is added
        const double all = kappa_ * tau_ * mean, x = std::min(all, kReach), part = x < all ? tau_ * x / all : tau_;
        double corner = 0.5 * tau_ * part * std::exp(-x), place = 3, term = 1, series = 1;
        for (const double side : off_) corner *= kappa_ * part * side / place++;
        for (double n = 1; n < x + k_ && corner * series <= enough; ++n) term *= x / (k_ + 1 + n), series += (n + 1) * term;
        return corner * series;
    }

    double k_, kappa_, tau_;
    const std::vector<double>& off_;
    double low_ = 0, high_ = 0, share_ = 0;
};

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

// Where a path gets to its next event.
#pragma once

#include <algorithm>

#include "kernels.hpp"

namespace bregpath {

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

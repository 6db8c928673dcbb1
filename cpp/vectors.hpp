// Small arithmetic that several share.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.hpp"

namespace bregpath {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline double dot(const double* x, const double* y, Size n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Size i = 0; i < n; ++i) sum += x[i] * y[i];
    return sum;
}

// The largest size of some numbers, or what it is at least.
inline double largest_of(const double* v, Size size, double at_least) {
    for (Size i = 0; i < size; ++i) at_least = std::max(at_least, std::abs(v[i]));
    return at_least;
}

// y += a x.
inline void add(double a, const double* x, double* y, Size n) {
#pragma omp simd
    for (Size i = 0; i < n; ++i) y[i] += a * x[i];
}

// A step to a few significant bits; see round_down in _kernels/reference.py.
inline double round_down(double h, double bits, double nudge) {
    int exponent;
    const double mantissa = std::frexp(h, &exponent);
    return std::ldexp(std::floor(std::ldexp(mantissa, int(bits)) + nudge), exponent - int(bits));
}

}  // namespace bregpath

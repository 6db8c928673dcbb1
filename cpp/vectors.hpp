// Small arithmetic that several share.
#pragma once

#include <cmath>
#include <vector>

#include "kernels.hpp"

namespace bregpath {

inline double dot(const double* x, const double* y, Size n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Size i = 0; i < n; ++i) sum += x[i] * y[i];
    return sum;
}

inline double norm(const std::vector<double>& x) { return std::sqrt(dot(x.data(), x.data(), Size(x.size()))); }

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

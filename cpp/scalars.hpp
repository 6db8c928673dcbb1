// Functions of single numbers that vectorise: no branches, no library calls. Under the rule of kernels.hpp.
#pragma once

#include <cstdint>
#include <cstring>

namespace {

// Horner's rule, highest coefficient first.
template <class... Rest>
inline double polynomial(double x, double sum, Rest... coefficients) {
    ((sum = sum * x + coefficients), ...);
    return sum;
}

// exp by the usual reduction x = k log 2 + r and a polynomial on |r| <= log(2)/2, the best of its degree (relative error 4e-18);
// 1 ulp or so on [-708, 709], clamped outside of it (so exp(1000) is large but finite: callers test the loss, not exp). Even and
// odd powers are summed apart, here and below: a sum that waits for every term of its own is what takes the time.
inline double fast_exp(double x) {
    x = x < -708.0 ? -708.0 : x;
    x = x > 709.0 ? 709.0 : x;
    constexpr double shifter = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits
    const double shifted = x * 1.4426950408889634 + shifter;
    const double k = shifted - shifter;
    double r = x - k * 6.93147180369123816490e-01;
    r -= k * 1.90821492927058770002e-10;
    const double s = r * r;
    const double even = polynomial(s, 2.7630247981289219714e-7, 2.480149310014844767e-5, 1.3888888943628762597e-3,
                                   4.1666666666530164462e-2, 0.50000000000000106263);
    const double odd = polynomial(s, 2.500005902771855425e-8, 2.7557586378997537291e-6, 1.9841269506577263549e-4,
                                  8.3333333334944596446e-3, 0.16666666666666412532);
    const double p = 1.0 + (r + s * (even + r * odd));
    int64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const uint64_t exponent = (uint64_t(bits) << 52) + (uint64_t{1023} << 52);
    double power;
    std::memcpy(&power, &exponent, sizeof power);
    return p * power;
}

// log(1 + u) for 0 <= u <= 1, as 2 atanh(s) with s = u / (2 + u): s times the best polynomial in s^2 (relative error 5e-17).
inline double fast_log1p(double u) {
    const double s = u / (2.0 + u), x = s * s, y = x * x;
    const double even = polynomial(y, 0.088743779384491697741, 0.067936177643507349674, 0.090914103236507392198,
                                   0.14285714531552964873, 0.3333333333333893471);
    const double odd = polynomial(y, 0.049491780646119716689, 0.076820966653361007831, 0.11111096329104664984,
                                  0.19999999997999260181);
    return 2.0 * (s + s * x * (even + x * odd));
}

// log(x) for finite x >= 1, as k log 2 + log(m) with 1 <= m < 2.
inline double fast_log(double x) {
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    // A whole number below 2^52 in the low bits of 2^52 is that number added to it: to convert one takes long.
    const uint64_t exponent = bits >> 52 | uint64_t{0x433} << 52;
    const uint64_t mantissa = (bits & (~uint64_t{0} >> 12)) | uint64_t{1023} << 52;
    double k, m;
    std::memcpy(&k, &exponent, sizeof k);
    std::memcpy(&m, &mantissa, sizeof m);
    return (k - (4503599627370496.0 + 1023.0)) * 6.93147180559945309417e-01 + fast_log1p(m - 1.0);
}

inline double absolute(double x) { return x < 0 ? -x : x; }

}  // namespace

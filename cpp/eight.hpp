// Eight numbers side by side, part of kernels_isa.cpp and under its rule: see kernels.hpp.
#pragma once

namespace {

// Sums must stay in registers, which compilers see to with vectors of their own that are as wide as these, and not with arrays.
#if defined(__GNUC__)
#if defined(__AVX512F__)
constexpr int kWide = 8;
#elif defined(__AVX__)
constexpr int kWide = 4;
#else
constexpr int kWide = 2;
#endif
typedef double Wide __attribute__((vector_size(kWide * sizeof(double)), aligned(sizeof(double)), may_alias));
#define BREGPATH_MAY_ALIAS __attribute__((may_alias))
#else
constexpr int kWide = 1;
typedef double Wide;
#define BREGPATH_MAY_ALIAS
#endif

struct BREGPATH_MAY_ALIAS Eight {
    Wide part[8 / kWide];

    Eight& operator+=(const Eight& other) {
        for (int i = 0; i < 8 / kWide; ++i) part[i] += other.part[i];
        return *this;
    }
    Eight& operator-=(const Eight& other) {
        for (int i = 0; i < 8 / kWide; ++i) part[i] -= other.part[i];
        return *this;
    }
    Eight& operator*=(double factor) {
        for (int i = 0; i < 8 / kWide; ++i) part[i] *= factor;
        return *this;
    }
    // Add a product.
    void add(double a, const Eight& b) {
        for (int i = 0; i < 8 / kWide; ++i) part[i] += a * b.part[i];
    }
    void add(const Eight& a, const Eight& b) {
        for (int i = 0; i < 8 / kWide; ++i) part[i] += a.part[i] * b.part[i];
    }
};
inline void clear(Eight& x) { x = Eight{}; }

}  // namespace

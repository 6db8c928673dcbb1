// Nodes with states, part of kernels_isa.cpp and under its rule: see kernels.hpp.
//
// Of a node with q states, eta and r are tiles (m, width): row by row, with q padded to `width`. A table (states of
// another node, width) holds the coefficients with one other node; a row of the data reads one row of each table, or is
// added to it. The tables of a node stay in the cache, and no row of the data is scattered.
#pragma once

#include "row_losses.hpp"

namespace {

using bregpath::States;

constexpr int kLanes = int(bregpath::kStateLanes);
constexpr double kNever = -1e300;  // predictor of the states that pad a node

// Sums of a row must stay in registers, which compilers see to with vectors of their own, and not with arrays.
#if defined(__GNUC__)
typedef double Four __attribute__((vector_size(4 * sizeof(double)), aligned(sizeof(double)), may_alias));
#else
struct Four {
    double x[4];
    Four& operator+=(const Four& other) {
        for (int i = 0; i < 4; ++i) x[i] += other.x[i];
        return *this;
    }
};
#endif
static_assert(kLanes == 4);

inline const Four& four(const double* at, int f) { return *reinterpret_cast<const Four*>(at + f * kLanes); }
inline Four& four(double* at, int f) { return *reinterpret_cast<Four*>(at + f * kLanes); }

// A panel is a part of the width whose sums fit into the registers.
template <int fours>
void predict_panel(States x, const double* const* tables, double* eta, Size first) {
    for (Size i = 0; i < x.m; ++i) {
        double* to = eta + i * x.width + first;
        Four sum[fours];
        for (int f = 0; f < fours; ++f) sum[f] = four(to, f);
        for (Size j = 0; j < x.sources; ++j) {
            const double* row = tables[j] + x.states[j][i] * x.width + first;
            for (int f = 0; f < fours; ++f) sum[f] += four(row, f);
        }
        for (int f = 0; f < fours; ++f) four(to, f) = sum[f];
    }
}

template <int fours>
void add_panel(States x, const double* r, double* const* tables, Size first) {
    for (Size i = 0; i < x.m; ++i) {
        Four own[fours];
        for (int f = 0; f < fours; ++f) own[f] = four(r + i * x.width + first, f);
        for (Size j = 0; j < x.sources; ++j) {
            double* row = tables[j] + x.states[j][i] * x.width + first;
            for (int f = 0; f < fours; ++f) four(row, f) += own[f];
        }
    }
}

// Calls work.template operator()<fours>(first lane) for the panels of a width, with at most six fours each.
template <class Work>
void by_panels(Size width, Work work) {
    for (Size l = 0; l < width;) {
        const Size fours = (width - l) / kLanes;
        switch (fours) {
            case 1: work.template operator()<1>(l); break;
            case 2: work.template operator()<2>(l); break;
            case 3: work.template operator()<3>(l); break;
            case 4: work.template operator()<4>(l); break;
            case 5: work.template operator()<5>(l); break;
            default: work.template operator()<6>(l);
        }
        l += (fours < 6 ? fours : 6) * kLanes;
    }
}

// Calls work(some of the sources, number of the first): so few that their tables stay in the fastest cache.
constexpr Size kSourcesTogether = 8;

template <class Work>
void by_sources(const States& x, Work work) {
    for (Size j = 0; j < x.sources; j += kSourcesTogether) {
        const Size count = x.sources - j < kSourcesTogether ? x.sources - j : kSourcesTogether;
        work(States{x.m, count, x.width, x.states + j}, j);
    }
}

void predict_states(const States& x, const double* const* tables, const double* alpha, double* eta) {
    for (Size i = 0; i < x.m; ++i) std::memcpy(eta + i * x.width, alpha, sizeof(double) * x.width);
    by_sources(x, [&](const States& some, Size j) {
        by_panels(x.width, [&]<int fours>(Size first) { predict_panel<fours>(some, tables + j, eta, first); });
    });
}

void add_states(const States& x, const double* r, double* const* tables) {
    by_sources(x, [&](const States& some, Size j) {
        by_panels(x.width, [&]<int fours>(Size first) { add_panel<fours>(some, r, tables + j, first); });
    });
}

// Probabilities of the states of a row, in place; returns the logarithm of what the exponentials were divided by.
double softmax_states(Size q, Size width, double* eta, bool want) {
    double top = eta[0], sum = 0.0;
#pragma omp simd reduction(max : top)
    for (Size l = 0; l < q; ++l) top = eta[l] > top ? eta[l] : top;
    for (Size l = q; l < width; ++l) eta[l] = kNever;
#pragma omp simd reduction(+ : sum)
    for (Size l = 0; l < width; ++l) {
        eta[l] = fast_exp(eta[l] - top);
        sum += eta[l];
    }
    const double scale = 1.0 / sum;
#pragma omp simd
    for (Size l = 0; l < width; ++l) eta[l] *= scale;
    return want ? top + ::log(sum) : 0.0;
}

void share_states(Size q, Size width, Size m, double* eta) {
    for (Size i = 0; i < m; ++i) softmax_states(q, width, eta + i * width, false);
}

double loss_states(const States& x, const Data& d, double* eta, bool want) {
    double value = 0.0;
    for (Size i = 0; i < x.m; ++i) {
        double* row = eta + i * x.width;
        const Size state = static_cast<Size>(d.y[i]);
        const double chosen = row[state], w = d.w[i], log_sum = softmax_states(d.q, x.width, row, want);
        if (want) value += w * (log_sum - chosen);
        row[state] -= 1.0;
#pragma omp simd
        for (Size l = 0; l < x.width; ++l) row[l] *= w;
    }
    return value;
}

void curve_states(const States& x, const Data& d, const double* share, double* u) {
    for (Size i = 0; i < x.m; ++i) {
        const double* p = share + i * x.width;
        double *row = u + i * x.width, mean = 0.0;
#pragma omp simd reduction(+ : mean)
        for (Size l = 0; l < d.q; ++l) mean += p[l] * row[l];
#pragma omp simd
        for (Size l = 0; l < x.width; ++l) row[l] = d.w[i] * p[l] * (row[l] - mean);
    }
}

}  // namespace

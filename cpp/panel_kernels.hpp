// Products with dense columns in panels, part of kernels_isa.cpp and under its rule: see kernels.hpp.
#pragma once

#include "moment_kernels.hpp"

namespace {

using bregpath::kPanelLanes;
using bregpath::kPanelRows;
using bregpath::Panels;

constexpr Size kCachedNumbers = 4096;  // of panels that are read twice: 32 kB
constexpr Size kMaxTogether = 8;       // panels, of which a loss is taken at once

Size panels_together(Size k) {
    const Size panels = kCachedNumbers / (kPanelRows * (k > 0 ? k : 1));
    return panels < 1 ? 1 : panels > kMaxTogether ? kMaxTogether : panels;
}

static_assert(kPanelRows == 4 * kPanelLanes && kPanelLanes == 8);

// Numbers side by side. The compilers that know vectors keep them in registers; of arrays they do not, even in the simplest loop.
#if defined(__GNUC__)
typedef double Lanes __attribute__((vector_size(sizeof(double) * kPanelLanes), aligned(sizeof(double)), may_alias));

inline void add_product(Lanes& sum, const Lanes& a, const Lanes& b) { sum += a * b; }
inline void add_product(Lanes& sum, double a, const Lanes& b) { sum += a * b; }
#else
struct Lanes {
    double at[kPanelLanes];
};

inline void add_product(Lanes& sum, const Lanes& a, const Lanes& b) {
    for (Size i = 0; i < kPanelLanes; ++i) sum.at[i] += a.at[i] * b.at[i];
}
inline void add_product(Lanes& sum, double a, const Lanes& b) {
    for (Size i = 0; i < kPanelLanes; ++i) sum.at[i] += a * b.at[i];
}
#endif

const Lanes* column_of(const Panels& x, const double* panel, Size c) {
    return reinterpret_cast<const Lanes*>(panel + x.at[c] * kPanelRows);
}

// eta += X beta on the rows of a panel.
void add_panel(const Panels& x, const double* panel, const double* beta, double* eta) {
    Lanes* e = reinterpret_cast<Lanes*>(eta);
    Lanes e0 = e[0], e1 = e[1], e2 = e[2], e3 = e[3];
    for (Size c = 0; c < x.k; ++c) {
        const Lanes* column = column_of(x, panel, c);
        const double b = beta[c];
        add_product(e0, b, column[0]), add_product(e1, b, column[1]), add_product(e2, b, column[2]), add_product(e3, b, column[3]);
    }
    e[0] = e0, e[1] = e1, e[2] = e2, e[3] = e3;
}

// The rows of a panel times r, added to as many sums of each column.
void add_panel_dots(const Panels& x, const double* panel, const double* r, double* lanes) {
    const Lanes* u = reinterpret_cast<const Lanes*>(r);
    const Lanes u0 = u[0], u1 = u[1], u2 = u[2], u3 = u[3];
    Lanes* sums = reinterpret_cast<Lanes*>(lanes);
    for (Size c = 0; c < x.k; ++c) {
        const Lanes* column = column_of(x, panel, c);
        Lanes sum = sums[c];
        add_product(sum, u0, column[0]), add_product(sum, u1, column[1]), add_product(sum, u2, column[2]);
        add_product(sum, u3, column[3]);
        sums[c] = sum;
    }
}

// What is done with the rows of a panel, of which the last may have fewer: then with as many, the others of which are zero.
template <class Work>
void on_panel(Size m, double* rows, Work work) {
    if (m == kPanelRows) return work(rows);
    double padded[kPanelRows] = {};
    for (Size i = 0; i < m; ++i) padded[i] = rows[i];
    work(padded);
    for (Size i = 0; i < m; ++i) rows[i] = padded[i];
}

// eta = start + X beta, then what is done with some rows of it, which leaves r there, then g = X' r.
template <class Between>
void pass(const Panels& x, Size q, const double* offset, const double* start, const double* beta, double* eta, double* r,
          double* g, double* lanes, Between between) {
    clear(lanes, q * x.k * kPanelLanes);
    const Size rows = panels_together(x.k) * kPanelRows;
    const auto each_panel = [&](Size first, Size end, double* vector, auto work) {
        for (Size i = first; i < end; i += kPanelRows) {
            const double* panel = x.numbers + i / kPanelRows * x.stride;
            const Size m = end - i < kPanelRows ? end - i : kPanelRows;
            for (Size l = 0; l < q; ++l) on_panel(m, vector + l * x.n + i, [&](double* u) { work(panel, l * x.k, u); });
        }
    };
    for (Size i = 0; i < x.n; i += rows) {
        const Size end = x.n - i < rows ? x.n : i + rows;
        start_rows(offset, q, x.n, i, end - i, start, eta);
        each_panel(i, end, eta, [&](const double* panel, Size c, double* u) { add_panel(x, panel, beta + c, u); });
        between(i, end - i);
        each_panel(i, end, r, [&](const double* panel, Size c, double* u) { add_panel_dots(x, panel, u, lanes + c * kPanelLanes); });
    }
    for (Size c = 0; c < q * x.k; ++c) {
        const double* s = lanes + c * kPanelLanes;
        g[c] = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    }
}

double panel_gradient(const Panels& x, const Data& d, const double* alpha, const double* beta, double* eta, double* r, double* g,
                      double* lanes, bool want) {
    double value = 0.0;
    pass(x, d.q, d.offset, alpha, beta, eta, r, g, lanes,
         [&](Size i, Size m) { value += loss_rows(d, i, m, x.n, eta + i, r + i, want); });
    return value;
}

void panel_hessian(const Panels& x, const Data& d, const double* h, const double* v0, const double* v, double* u, double* g,
                   double* g0, double* lanes) {
    pass(x, d.q, nullptr, v0, v, u, u, g, lanes, [&](Size i, Size m) { curve_rows(d, x.n, i, m, h, u); });
    for (Size l = 0; l < d.q; ++l) g0[l] = total(u + l * x.n, x.n);
}

}  // namespace

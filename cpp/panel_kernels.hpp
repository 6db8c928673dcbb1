// Products with dense columns in panels, part of kernels_isa.cpp and under its rule: see kernels.hpp.
#pragma once

#include "eight.hpp"
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

const Eight* column_of(const Panels& x, const double* panel, Size c) {
    return reinterpret_cast<const Eight*>(panel + x.at[c] * kPanelRows);
}

// eta += X beta on the rows of a panel.
void add_panel(const Panels& x, const double* panel, const double* beta, double* eta) {
    Eight* e = reinterpret_cast<Eight*>(eta);
    Eight e0 = e[0], e1 = e[1], e2 = e[2], e3 = e[3];
    for (Size c = 0; c < x.k; ++c) {
        const Eight* column = column_of(x, panel, c);
        const double b = beta[c];
        e0.add(b, column[0]), e1.add(b, column[1]), e2.add(b, column[2]), e3.add(b, column[3]);
    }
    e[0] = e0, e[1] = e1, e[2] = e2, e[3] = e3;
}

// The rows of a panel times r, added to eight sums of each column.
void add_panel_dots(const Panels& x, const double* panel, const double* r, double* lanes) {
    const Eight* u = reinterpret_cast<const Eight*>(r);
    const Eight u0 = u[0], u1 = u[1], u2 = u[2], u3 = u[3];
    Eight* sums = reinterpret_cast<Eight*>(lanes);
    for (Size c = 0; c < x.k; ++c) {
        const Eight* column = column_of(x, panel, c);
        Eight sum = sums[c];
        sum.add(u0, column[0]), sum.add(u1, column[1]), sum.add(u2, column[2]), sum.add(u3, column[3]);
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

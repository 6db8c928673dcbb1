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

// Outputs that meet a panel together, so that what is read of it is used for each of them.
constexpr Size kOutputs = kWide == 8 ? 4 : 1;

// eta += X beta on the rows of a panel, of some outputs that are `apart` from each other.
template <int outputs>
void add_panel(const Panels& x, const double* panel, const double* beta, double* eta, Size apart) {
    Eight sums[outputs][4];
    for (int l = 0; l < outputs; ++l)
        for (int i = 0; i < 4; ++i) sums[l][i] = reinterpret_cast<const Eight*>(eta + l * apart)[i];
    const Size k = x.k;
    for (Size c = 0; c < k; ++c) {
        const Eight* column = column_of(x, panel, c);
        for (int l = 0; l < outputs; ++l)
            for (int i = 0; i < 4; ++i) sums[l][i].add(beta[l * k + c], column[i]);
    }
    for (int l = 0; l < outputs; ++l)
        for (int i = 0; i < 4; ++i) reinterpret_cast<Eight*>(eta + l * apart)[i] = sums[l][i];
}

// The rows of a panel times r, added to eight sums of each column, of some outputs.
template <int outputs>
void add_panel_dots(const Panels& x, const double* panel, const double* r, double* lanes, Size apart) {
    Eight u[outputs][4];
    for (int l = 0; l < outputs; ++l)
        for (int i = 0; i < 4; ++i) u[l][i] = reinterpret_cast<const Eight*>(r + l * apart)[i];
    const Size k = x.k;
    for (Size c = 0; c < k; ++c) {
        const Eight* column = column_of(x, panel, c);
        Eight* to = reinterpret_cast<Eight*>(lanes) + c;
        Eight sums[outputs];
        for (int l = 0; l < outputs; ++l) sums[l] = to[l * k];
        for (int i = 0; i < 4; ++i) {
            const Eight rows = column[i];
            for (int l = 0; l < outputs; ++l) sums[l].add(u[l][i], rows);
        }
        for (int l = 0; l < outputs; ++l) to[l * k] = sums[l];
    }
}

using OnPanel = void (*)(const Panels&, const double* panel, const double* from, double* to, Size apart);
constexpr OnPanel kAddPanel[] = {add_panel<1>, add_panel<2>, add_panel<3>, add_panel<4>};
constexpr OnPanel kAddPanelDots[] = {add_panel_dots<1>, add_panel_dots<2>, add_panel_dots<3>, add_panel_dots<4>};

// What is done with the rows of a panel, of which the last may have fewer: then with as many, the others of which are zero.
template <class Work>
void on_panel(Size outputs, Size m, double* rows, Size apart, Work work) {
    if (m == kPanelRows) return work(rows, apart);
    double padded[kOutputs * kPanelRows] = {};
    for (Size l = 0; l < outputs; ++l)
        for (Size i = 0; i < m; ++i) padded[l * kPanelRows + i] = rows[l * apart + i];
    work(padded, kPanelRows);
    for (Size l = 0; l < outputs; ++l)
        for (Size i = 0; i < m; ++i) rows[l * apart + i] = padded[l * kPanelRows + i];
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
            for (Size l = 0; l < q; l += kOutputs) {
                const Size outputs = q - l < kOutputs ? q - l : kOutputs;
                on_panel(outputs, m, vector + l * x.n + i, x.n,
                         [&](double* u, Size apart) { work(outputs - 1, panel, l * x.k, u, apart); });
            }
        }
    };
    for (Size i = 0; i < x.n; i += rows) {
        const Size end = x.n - i < rows ? x.n : i + rows;
        start_rows(offset, q, x.n, i, end - i, start, eta);
        each_panel(i, end, eta, [&](Size others, const double* panel, Size c, double* u, Size apart) {
            kAddPanel[others](x, panel, beta + c, u, apart);
        });
        between(i, end - i);
        each_panel(i, end, r, [&](Size others, const double* panel, Size c, double* u, Size apart) {
            kAddPanelDots[others](x, panel, u, lanes + c * kPanelLanes, apart);
        });
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

// The path between its knots, on cubics of the dual variable: the l1 penalty without limits. See flow/reading.py.
#include <algorithm>
#include <cmath>
#include <vector>

#include <nanobind/stl/pair.h>

#include "arguments.hpp"

namespace {

using namespace bregpath;

const Kernels* kernels = nullptr;  // chosen once, when the module is loaded

class Knots {
   public:
    Knots(const Named& from, double kappa, double visible, double on_it)
        : n_alpha(from.length("alpha", 1)), m(from.length("z", 1)), q(from.length("z", 2)), kappa_(kappa),
          visible_(visible), on_it_(on_it), d_(from.length("t")), t_(from.numbers("t", {d_})),
          value_(from.numbers("value", {d_})), alpha_(from.numbers("alpha", {d_, n_alpha})),
          alpha_slope_(from.numbers("alpha_slope", {d_, n_alpha})), z_(from.numbers("z", {d_, m, q})),
          slope_(from.numbers("slope", {d_, m, q})), weights_(from.numbers("weights", {m, q})) {
        require(d_ >= 2, "there is no step");
    }

    const Size n_alpha, m, q;

    // Intercepts and coefficients at a time; times that follow each other in a step share its trust.
    void read(double time, double* alpha, double* beta) {
        const Size row = std::lower_bound(t_ + 1, t_ + d_ - 1, time) - (t_ + 1);
        if (row != row_) row_ = row, trust_ = trust();
        const double step = t_[row + 1] - t_[row], theta = (time - t_[row]) / step, h = step * trust_;
        const double share = theta * theta * (3 - 2 * theta), rest = 1 - theta;
        const double from = h * theta * rest * rest, to = h * theta * theta * rest;
        const auto curve = [&](const double* x, const double* slope, Size width, Size i) {
            return (1 - share) * x[i] + share * x[i + width] + from * slope[i] - to * slope[i + width];
        };
        for (Size k = 0; k < n_alpha; ++k)
            alpha[k] = curve(alpha_ + row * n_alpha, alpha_slope_ + row * n_alpha, n_alpha, k);
        const double *z = z_ + row * m * q, *slope = slope_ + row * m * q;
        if (q == 1) {
            const double shares[] = {1 - share, share, from, to};
            return kernels->shrink_cubics(m, shares, z, z + m, slope, slope + m, weights_, kappa_, beta);
        }
        for (Size j = 0; j < m * q; j += q) {
            bool moves = false, free = true;
            for (Size i = j; i < j + q; ++i) {
                moves = moves || std::abs(z[i]) > weights_[i] || std::abs(z[i + m * q]) > weights_[i];
                free = free && weights_[i] == 0;
            }
            for (Size i = j; i < j + q; ++i) {
                const double at = curve(z, slope, m * q, i), beyond = std::max(std::abs(at) - weights_[i], 0.0);
                beta[i] = moves || free ? kappa_ * std::copysign(beyond, at) : 0.0;
            }
        }
    }

    // Share of the slopes that counts in a step.
    double trust_of(Size row) {
        row_ = row;
        return trust_ = trust();
    }

   private:
    // Share of the slopes with which the loss falls all the way in the present step.
    double trust() const {
        const double fall = value_[row_] - value_[row_ + 1];
        const double *z = z_ + row_ * m * q, *slope = slope_ + row_ * m * q, *of_alpha = alpha_slope_ + row_ * n_alpha;
        double speed[2] = {0, 0}, alpha_speed[2] = {0, 0};
        for (Size i = 0; i < m * q; ++i) {
            const double least = (1 + on_it_) * weights_[i];
            if (weights_[i] != 0 && !(std::abs(z[i]) > least && std::abs(z[i + m * q]) > least)) continue;
            for (Size end : {0, 1}) speed[end] += slope[i + end * m * q] * slope[i + end * m * q];
        }
        for (Size end : {0, 1}) {
            for (Size k = 0; k < n_alpha; ++k) alpha_speed[end] += std::pow(of_alpha[k + end * n_alpha], 2);
            speed[end] = kappa_ * speed[end] + alpha_speed[end] / kappa_;
        }
        const double expected = (t_[row_ + 1] - t_[row_]) * std::hypot(speed[0], speed[1]);
        if (!(expected > std::max(3 * fall, visible_ * std::abs(value_[row_])))) return 1.0;
        return std::min(3 * std::max(fall, 0.0) / expected, 1.0);
    }

    double kappa_, visible_, on_it_;
    Size d_;
    const double *t_, *value_, *alpha_, *alpha_slope_, *z_, *slope_, *weights_;
    Size row_ = -1;
    double trust_ = 1;
};

void read_cubics(nb::dict arrays, double kappa, double visible, double on_it) {
    const Named from("the knots", arrays);
    Knots knots(from, kappa, visible, on_it);
    const Size count = from.length("times");
    const double* times = from.numbers("times", {count});
    double *alpha = from.array<double>("alpha_out", {count, knots.n_alpha}),
           *beta = from.array<double>("beta_out", {count, knots.m, knots.q});
    nb::gil_scoped_release nogil;
    for (Size k = 0; k < count; ++k) knots.read(times[k], alpha + k * knots.n_alpha, beta + k * knots.m * knots.q);
}

// Which columns are beyond a threshold of the l1 penalty at the first knot, and (knot before, column, whether it is beyond) of
// every change after that. Columns without any threshold always are.
std::pair<nb::list, nb::list> changes(const nb::ndarray<const double, nb::ndim<3>, nb::device::cpu> z,
                                      const nb::ndarray<const double, nb::c_contig, nb::ndim<2>, nb::device::cpu> weights) {
    const Size knots = Size(z.shape(0)), m = Size(z.shape(1)), q = Size(z.shape(2));
    require(Size(weights.shape(0)) == m && Size(weights.shape(1)) == q, "`weights` has a wrong shape");
    const Size row = z.stride(0), column = z.stride(1), output = z.stride(2);
    std::vector<double> threshold(weights.data(), weights.data() + m * q), active(m, 0.0);  // numbers of one size make one loop
    for (Size j = 0; j < m; ++j) {
        const auto begin = threshold.begin() + j * q;
        if (std::all_of(begin, begin + q, [](double x) { return x == 0; })) std::fill(begin, begin + q, -1.0);
    }
    nb::list first, later;
    for (Size k = 0; k < knots; ++k) {
        const double* at = z.data() + k * row;
        if (q == 1 && column == 1 && kernels->crossings(m, at, threshold.data(), active.data()) == 0) continue;
        for (Size j = 0; j < m; ++j) {
            bool is_beyond = false;
            for (Size i = 0; i < q; ++i)
                is_beyond = is_beyond || std::abs(at[j * column + i * output]) > threshold[j * q + i];
            if (is_beyond == (active[j] != 0)) continue;
            active[j] = is_beyond;
            if (k == 0) first.append(j);
            else later.append(nb::make_tuple(k - 1, j, is_beyond));
        }
    }
    return {first, later};
}

// Some of the columns that knots hold, put together.
void take_columns(const nb::ndarray<const double, nb::ndim<3>, nb::device::cpu> x,
                  const nb::ndarray<const int64_t, nb::c_contig, nb::ndim<1>, nb::device::cpu> columns,
                  const nb::ndarray<double, nb::c_contig, nb::ndim<3>, nb::device::cpu> out) {
    const Size knots = Size(x.shape(0)), m = Size(x.shape(1)), q = Size(x.shape(2)), k = Size(columns.shape(0));
    const int64_t* chosen = columns.data();
    require(Size(out.shape(0)) == knots && Size(out.shape(1)) == k && Size(out.shape(2)) == q, "`out` has a wrong shape");
    require(std::all_of(chosen, chosen + k, [m](int64_t j) { return j >= 0 && j < m; }), "a column is out of range");
    const Size row = x.stride(0), column = x.stride(1), output = x.stride(2);
    double* to = out.data();
    for (Size r = 0; r < knots; ++r)
        for (Size c = 0; c < k; ++c)
            for (Size i = 0; i < q; ++i) *to++ = x.data()[r * row + chosen[c] * column + i * output];
}

// Share of the slopes that counts in each step.
void trust_cubics(nb::dict arrays, double kappa, double visible, double on_it) {
    const Named from("the knots", arrays);
    Knots knots(from, kappa, visible, on_it);
    const Size steps = from.length("t") - 1;
    double* trust = from.array<double>("trust_out", {steps});
    nb::gil_scoped_release nogil;
    for (Size k = 0; k < steps; ++k) trust[k] = knots.trust_of(k);
}

// Integrals of s^power times the model over parts of steps, by a rule with one node inside and one at the end, and the
// models at their ends.
void integrate_cubics(nb::dict arrays, double kappa, double visible, double on_it, double power, double node,
                      double early, double late) {
    const Named from("the knots", arrays);
    Knots knots(from, kappa, visible, on_it);
    const Size count = from.length("low"), a = knots.n_alpha, c = knots.m * knots.q;
    const double *low = from.numbers("low", {count}), *high = from.numbers("high", {count});
    double *alpha = from.array<double>("alpha_out", {2, count, a}),
           *beta = from.array<double>("beta_out", {2, count, knots.m, knots.q});
    nb::gil_scoped_release nogil;
    const auto sum = [](double* x, const double* end, Size size, double of_x, double of_end) {
        for (Size i = 0; i < size; ++i) x[i] = of_x * x[i] + of_end * end[i];
    };
    for (Size k = 0; k < count; ++k) {
        const double h = high[k] - low[k], inside = low[k] + node * h;
        const double of_inside = early * h * std::pow(inside, power), of_end = late * h * std::pow(high[k], power);
        double *alpha_end = alpha + (count + k) * a, *beta_end = beta + (count + k) * c;
        knots.read(inside, alpha + k * a, beta + k * c);
        knots.read(high[k], alpha_end, beta_end);
        sum(alpha + k * a, alpha_end, a, of_inside, of_end);
        sum(beta + k * c, beta_end, c, of_inside, of_end);
    }
}

}  // namespace

void bind_reading(nb::module_& m, const Kernels* chosen) {
    kernels = chosen;
    m.def("changes", &changes, nb::arg("z"), nb::arg("weights"));
    m.def("take_columns", &take_columns, nb::arg("x"), nb::arg("columns"), nb::arg("out"));
    m.def("integrate_cubics", &integrate_cubics, nb::arg("arrays"), nb::arg("kappa"), nb::arg("visible"),
          nb::arg("on_it"), nb::arg("power"), nb::arg("node"), nb::arg("early"), nb::arg("late"));
    m.def("trust_cubics", &trust_cubics, nb::arg("arrays"), nb::arg("kappa"), nb::arg("visible"), nb::arg("on_it"));
    m.def("read_cubics", &read_cubics, nb::arg("arrays"), nb::arg("kappa"), nb::arg("visible"), nb::arg("on_it"));
}

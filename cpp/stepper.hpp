// Steps on a working set of columns: the compiled twin of _kernels/reference.py, which explains them. All that is of
// size n belongs to the rows; here are vectors over working columns, and scalars.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "rows.hpp"
#include "vectors.hpp"

namespace bregpath {

// See _kernels/reference.py and _kernels/chebyshev.py for the constants, which are handed over by their names there.
struct Settings {
    double kappa, fixed_step, tol;  // fixed_step: 0 for adaptive ones
    bool looks_inside;              // of adaptive steps
    double safety, rate_margin, rate_share, entry_share, entry_ahead, freeze_growth, watch_growth, min_progress, seen, rounding;
    double noise, damping, stability, max_stages, rate_steps, entry_floor, max_attempts, inside, first, nudge;
    double step_bits;
};

// Between two steps; see Knot in records.py.
struct State {
    double t = 0, value = 0, h = 0, reach = 0, rate = 0, frozen_t = 0, watched_t = 0, age = 0, gradients = 0, products = 0;
    double watched_products = 0, is_stiff = 0;
    std::vector<double> alpha, alpha_slope, z, slope, direction, alpha_direction;
};

struct Unstable {
    double largest;  // stable step
};
struct Stalled {
    bool outside = false;  // because the path is about to leave the domain of the loss
};

class Stepper {
   public:
    Stepper(const Kernels* kernels, std::unique_ptr<Rows> rows, Penalty penalty, const Settings& settings)
        : k_(kernels), rows_(std::move(rows)), penalty_(std::move(penalty)), set_(settings),
          method_(settings.damping, settings.stability), m_(penalty_.m), q_(penalty_.q), n_alpha_(rows_->n_alpha),
          everything_(others_of({}, m_)) {
        for (State* s : {&state, &next_}) {
            for (auto* v : {&s->alpha, &s->alpha_slope, &s->alpha_direction}) v->assign(n_alpha_, 0.0);
            for (auto* v : {&s->z, &s->slope, &s->direction}) v->assign(m_ * q_, 0.0);
        }
        for (auto* v : {&entry_now_, &entry_then_, &entry_expected_, &moved_, &start_beta_, &beta_}) v->assign(m_ * q_, 0.0);
        speed_.assign(m_ * q_ + n_alpha_, 0.0);
    }

    State state;
    Rows& rows() { return *rows_; }

    // After a new state was set: the rows there.
    void load(const double* R, const double* residual) {
        active_ = active(state.z, entry_now_);
        const Index index = marked(active_);
        gather(index, state.z, state.alpha, start_);
        penalty_.primal(index, start_.data(), set_.kappa, beta_.data());
        rows_->load(at(index, beta_, start_), R, residual);
    }

    // Throws Unstable or Stalled.
    void step() { set_.fixed_step > 0 ? fixed_step() : adaptive_step(); }

    // Whether products with columns are more than so many in a unit of log t, which is seen now and then.
    bool is_stiff(double most_products) {
        if (state.t >= set_.watch_growth * state.watched_t) {
            const double most = most_products * std::log(state.t / state.watched_t);
            state.is_stiff = state.watched_t > 0 && state.watched_products > most;
            if (state.is_stiff == 0) state.watched_t = state.t, state.watched_products = 0;
        }
        return state.is_stiff;
    }

    // The loss at coefficients of all columns.
    double value(const double* alpha, const double* beta) {
        const Index index = marked(any_output([&](Size i) { return beta[i] != 0; }));
        const Size k = Size(index.size());
        for (Size l = 0; l < q_; ++l)
            for (Size c = 0; c < k; ++c) beta_[l * k + c] = beta[l * m_ + index[c]];
        return rows_->value({index, beta_.data(), alpha});
    }

    // The same, the residual, and the speed of all columns and alpha.
    double look(const double* alpha, const double* beta, double* residual, double* speed) {
        return rows_->look({everything_, beta, alpha}, residual, speed);
    }

   private:
    // --- one step

    // The live columns, alpha and the rows at the end of a step; false where something is not finite.
    bool attempt(double h, Size stages, const Index& live) {
        const Chebyshev::Stages& c = method_.stages(stages);
        gather(live, state.z, state.alpha, start_);
        gather(live, state.slope, state.alpha_slope, start_speed_);
        speed_.resize(start_.size());
        penalty_.primal(live, start_.data(), set_.kappa, start_beta_.data());
        rows_->begin(at(live, start_beta_, start_), start_speed_.data(), h, c);
        moving_.begin(Size(start_.size()), start_.data(), start_speed_.data(), c.first * h);
        for (Factors factors : c.others) {
            factors[3] *= h, factors[4] *= h;
            penalty_.primal(live, moving_.stage().data(), set_.kappa, beta_.data());
            rows_->stage(at(live, beta_, moving_.stage()), factors, speed_.data());
            double sum;
            k_->totals(Size(speed_.size()), 1, speed_.data(), &sum);
            if (!std::isfinite(sum)) return false;
            moving_.next(k_, factors, speed_.data());
        }
        penalty_.primal(live, moving_.stage().data(), set_.kappa, beta_.data());
        next_.value = rows_->arrive(at(live, beta_, moving_.stage()), speed_.data());
        next_.t = state.t + h;
        std::copy_n(moving_.stage().end() - n_alpha_, n_alpha_, next_.alpha.begin());
        std::copy_n(speed_.end() - n_alpha_, n_alpha_, next_.alpha_slope.begin());
        return std::isfinite(next_.value);
    }

    // z and slopes of all columns at the new state.
    void finish(const Index& live) {
        rows_->finish(state.z.data(), state.slope.data(), next_.z.data(), next_.slope.data());
        scatter(live, moving_.stage().data(), next_.z);
        scatter(live, speed_.data(), next_.slope);
    }

    // Make the new state the present one.
    void commit() {
        rows_->commit();
        std::swap(state, next_);
    }

    // What the next state has of the present one: the curvature as it was seen, and what all steps have cost.
    void remember() {
        next_.rate = state.rate, next_.age = state.age, next_.frozen_t = state.frozen_t;
        next_.direction = state.direction, next_.alpha_direction = state.alpha_direction;
        next_.gradients = state.gradients, next_.products = state.products;
        next_.watched_t = state.watched_t, next_.watched_products = state.watched_products, next_.is_stiff = state.is_stiff;
    }

    bool above_rounding(double value) const {
        return !(value <= state.value + set_.rounding * (std::abs(state.value) + 1e-3));
    }

    // --- fixed steps

    // The three lines: a method of one stage.
    void fixed_step() {
        const double h = set_.fixed_step;
        for (Size i = 0; i < m_ * q_; ++i) moved_[i] = state.z[i] + h * state.slope[i];
        Flags live = active(state.z, entry_now_);
        const Flags support = active(moved_, entry_then_);
        for (Size j = 0; j < m_; ++j) live[j] = live[j] || support[j];
        attempt(h, 1, marked(live));
        if (above_rounding(next_.value)) {
            State at = state;
            const double rate = curvature_rate(support, 50, at), stable = 2.0 / (set_.kappa * rate);
            if (h >= 0.999 * stable || !std::isfinite(rate)) throw Unstable{stable};
            if (rows_->has_domain() && std::isinf(next_.value)) throw Stalled{true};
        }
        finish(marked(live));
        std::swap(next_.z, moved_);  // columns at rest moved like all others, not by quadrature
        remember();
        next_.h = next_.reach = h;
        next_.gradients += 1, next_.products += 2.0 * double(m_);
        commit();
    }

    // --- adaptive steps

    void adaptive_step() {
        const bool linear = rows_->has_linear_stages(), has_domain = rows_->has_domain();
        const Flags started = active_;
        renew_curvature(started);
        const double rate = set_.kappa * set_.rate_margin * next_.rate, ahead = linear ? set_.entry_ahead : 1.0;
        double h = state.h > 0 ? state.h : first_length(), reach = 0, earlier_rise = kInfinity;
        bool outside = false;
        Flags forced(m_, 0), entering(m_, 0), is_live(m_, 0);
        for (int attempts = 0; attempts < set_.max_attempts && h > 1e-13 * state.t; ++attempts) {
            Size stages = method_.stages_needed(h * rate);
            if (double(stages) > set_.max_stages) {
                stages = Size(set_.max_stages), h = method_.longest_step(stages, rate);
                if (h < set_.min_progress * state.t) throw Stalled{};
            }
            reach = std::max(reach, ahead * h);
            h = round_down(shorten_to_entry(h, 1.0 / rate, ahead, entering), set_.step_bits, set_.nudge);
            stages = std::min(stages, method_.stages_needed(h * rate));
            for (Size j = 0; j < m_; ++j) is_live[j] = started[j] || entering[j] || forced[j];
            penalty_.complete_groups(is_live);
            const Index live = marked(is_live);
            const bool finite = attempt(h, stages, live);
            next_.gradients += linear ? 1.0 : double(stages);
            const double of_stages = double(2 * stages * Size(live.size()));
            next_.products += of_stages + double(2 * m_), next_.watched_products += of_stages;
            if (!finite) {  // overflow: the local curvature is far from that at the knot
                h *= 0.2, outside = has_domain;
                continue;
            }
            const double worst = error(h, live);
            // Between two knots the loss need not fall by more than can be seen.
            const bool looks_inside = set_.looks_inside && worst <= 1.0;
            const double allowed = set_.noise * std::abs(state.value);
            const double highest = std::max(next_.value, looks_inside ? highest_inside(h, live) - allowed : next_.value);
            const double rise = highest - state.value;
            outside = std::isinf(highest);
            // A true rise c h^2 - d h falls by more than a factor of four when h is halved; that of rounding does not.
            const bool is_noise = rise <= set_.noise * std::abs(state.value) && rise > 0.25 * earlier_rise;
            if (!(worst <= 1.0) || (above_rounding(highest) && !is_noise)) {
                if (linear && state.frozen_t < state.t) {  // that may be the fault of an old curvature
                    freeze();
                    continue;
                }
                const double shorter = std::isfinite(worst) && worst > 0 ? set_.safety / std::cbrt(worst) : 0.1;
                h *= std::min(0.5, std::max(0.1, shorter));
                earlier_rise = above_rounding(highest) ? rise : kInfinity;
                continue;
            }
            finish(live);
            active_ = active(next_.z, entry_then_);
            bool missed = false;
            for (Size j = 0; j < m_; ++j)
                if (active_[j] && !is_live[j]) forced[j] = 1, missed = true;
            if (missed) continue;
            entry_now_.swap(entry_then_);
            next_.h = h * std::min(3.0, std::max(0.3, set_.safety / std::cbrt(std::max(worst, 1e-6))));
            next_.reach = reach;
            return commit();
        }
        throw Stalled{outside};
    }

    // A cautious step: a tenth of the explicit stability limit at the first entry.
    double first_length() {
        State scratch = state;
        const Flags first = any_output([&](Size i) { return entry_now_[i] <= set_.first; });
        return std::min(0.1 / (set_.kappa * curvature_rate(first, 3, scratch)), 0.1 * state.t);
    }

    // What the next step remembers of the curvature, which changes slowly unless many columns have entered.
    void renew_curvature(const Flags& started) {
        if (rows_->has_linear_stages() && state.t >= set_.freeze_growth * state.frozen_t) freeze();
        remember();
        ++next_.age;
        if (next_.rate > 0 && next_.age < set_.rate_steps && !has_many_new(started)) return;
        next_.rate = curvature_rate(started, 2, next_), next_.age = 0;
        next_.products += 4.0 * double(std::count(started.begin(), started.end(), 1));
    }

    void freeze() {
        rows_->freeze();
        next_.frozen_t = state.frozen_t = state.t;
    }

    // Shorten a step to end just after the first few expected entries, and tell which columns enter.
    double shorten_to_entry(double h, double slack, double ahead, Flags& entering) {
        const Size size = m_ * q_;
        const auto look = [&](double length) {
            for (Size i = 0; i < size; ++i) moved_[i] = state.z[i] + length * state.slope[i];
            penalty_.entry(everything_, moved_.data(), entry_then_.data());
        };
        look(h);
        std::vector<double> shares;
        double n_active = 0;
        for (Size i = 0; i < size; ++i) {
            if (entry_now_[i] < 0)
                ++n_active;
            else if (entry_then_[i] < 0)
                shares.push_back(entry_now_[i] / (entry_now_[i] - entry_then_[i]));
        }
        if (!shares.empty()) {
            const double counted = std::max(n_active - (rows_->has_linear_stages() ? 0 : set_.entry_floor), 0.0);
            const size_t together = std::min(size_t(set_.entry_share * counted), shares.size() - 1);
            std::nth_element(shares.begin(), shares.begin() + together, shares.end());
            h = std::min(h, h * shares[together] + slack);
        }
        if (!shares.empty() || ahead != 1) look(ahead * h);
        entering = any_output([&](Size i) { return entry_now_[i] >= 0 && entry_then_[i] < 0; });
        return h;
    }

    // Error of the coefficients as a multiple of the tolerance, from the live columns as attempt() left them.
    double error(double h, const Index& live) {
        const Size k = Size(live.size()), moving = k * q_;
        const std::vector<double>& end = moving_.stage();
        penalty_.entry(live, end.data(), entry_then_.data());
        // One that is thrown back below its threshold by a step far too long is at zero at both ends.
        for (Size i = 0; i < moving; ++i) moved_[i] = start_[i] + h * start_speed_[i];
        penalty_.entry(live, moved_.data(), entry_expected_.data());
        double worst = 0;
        const auto look = [&](Size i, double scale) {
            const double e = 0.8 * (start_[i] - end[i]) + 0.4 * h * (start_speed_[i] + speed_[i]);
            worst = std::max(worst, scale * std::abs(e));
        };
        for (Size l = 0; l < q_; ++l)
            for (Size c = 0; c < k; ++c)
                if (entry_now_[l * m_ + live[c]] < 0 || entry_then_[l * k + c] < 0 || entry_expected_[l * k + c] < 0)
                    look(l * k + c, set_.kappa);
        for (Size i = moving; i < moving + n_alpha_; ++i) look(i, 1.0);
        const double size = 0.5 * (largest_of(start_beta_.data(), moving, 0.0) + largest_of(beta_.data(), moving, 0.0));
        return worst / (set_.tol * std::max(size, 1e-6 * set_.kappa));
    }

    // Largest loss at a few times inside a step, where the path is read by cubics: infinite outside of its domain.
    double highest_inside(double h, const Index& live) {
        const std::vector<double>& end = moving_.stage();
        double highest = -kInfinity;
        inside_.resize(end.size()), inside_beta_.resize(live.size() * q_);
        for (double k = 1; k <= set_.inside; ++k) {
            const double theta = k / (set_.inside + 1);
            const double share = theta * theta * (3 - 2 * theta), rest = 1 - theta;
            const double from = h * theta * rest * rest, to = h * theta * theta * rest;
            for (size_t i = 0; i < end.size(); ++i)
                inside_[i] = (1 - share) * start_[i] + share * end[i] + from * start_speed_[i] - to * speed_[i];
            penalty_.primal(live, inside_.data(), set_.kappa, inside_beta_.data());
            highest = std::max(highest, rows_->value(at(live, inside_beta_, inside_)));
        }
        return highest;
    }

    // --- the largest curvature

    // Power iteration from the direction of a state, which it renews.
    double curvature_rate(Flags columns, int iterations, State& of) {
        penalty_.complete_groups(columns);
        const Index index = marked(columns);
        const Size size = Size(index.size()) * q_;
        std::vector<double> v, z, product(size + n_alpha_);
        gather(index, of.direction, of.alpha_direction, v);
        gather(index, state.z, state.alpha, z);
        const double largest_v = largest_of(v.data(), size, 1e-3), largest_z = largest_of(z.data(), size, 0.0);
        for (Size i = 0; i < size; ++i)
            if (v[i] == 0) v[i] = 0.1 * largest_v * (largest_z > 0 ? z[i] / largest_z : 1.0);
        rows_->update_hessian();
        double rate = 0;
        for (int k = 0; k < iterations; ++k) {
            const double length = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
            if (!(length > 0)) break;
            for (double& x : v) x /= length;
            if (set_.fixed_step == 0) penalty_.root(index, z.data(), v.data());
            rows_->hessian(at(index, v, v), product.data());
            v.swap(product);
            if (set_.fixed_step == 0) penalty_.root(index, z.data(), v.data());
            if (rows_->alpha_rate == 0) std::fill(v.begin() + size, v.end(), 0.0);
            rate = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
        }
        if (rows_->alpha_rate != 0) {  // intercepts that no column is coupled to: their own curvature
            const std::vector<double> ones(n_alpha_, 1.0);
            std::vector<double> own(n_alpha_);
            rows_->hessian(at({}, ones, ones), own.data());
            rate = largest_of(own.data(), n_alpha_, rate);
        }
        for (Size i = 0; i < size; ++i)
            if (v[i] == 0) v[i] = set_.seen;
        std::fill(of.direction.begin(), of.direction.end(), 0.0);
        scatter(index, v.data(), of.direction);
        of.alpha_direction.assign(v.begin() + size, v.end());
        return std::max(rate, 1e-12);
    }

    // Whether many columns have started to move since the curvature was last looked at.
    bool has_many_new(const Flags& started) const {
        const Flags seen = any_output([&](Size i) { return state.direction[i] != 0; });
        Size known = 0, fresh = 0;
        for (Size j = 0; j < m_; ++j) known += seen[j], fresh += started[j] && !seen[j];
        return double(fresh) > set_.rate_share * double(known);
    }

    // --- between all columns and some

    // Columns beyond their thresholds at z, the distances to which are left in `entry`.
    Flags active(const std::vector<double>& z, std::vector<double>& entry) {
        penalty_.entry(everything_, z.data(), entry.data());
        return any_output([&](Size i) { return entry[i] < 0; });
    }

    // Columns of which something holds at the place of one output at least.
    template <class Condition>
    Flags any_output(Condition holds) const {
        Flags columns(m_, 0);
        for (Size l = 0; l < q_; ++l)
            for (Size j = 0; j < m_; ++j) columns[j] |= holds(l * m_ + j);
        return columns;
    }

    // Some columns of an array over all, then alpha.
    void gather(const Index& index, const std::vector<double>& from, const std::vector<double>& alpha,
                std::vector<double>& to) const {
        const Size k = Size(index.size());
        to.resize(k * q_ + n_alpha_);
        for (Size l = 0; l < q_; ++l)
            for (Size c = 0; c < k; ++c) to[l * k + c] = from[l * m_ + index[c]];
        std::copy(alpha.begin(), alpha.end(), to.begin() + k * q_);
    }

    void scatter(const Index& index, const double* from, std::vector<double>& to) const {
        const Size k = Size(index.size());
        for (Size l = 0; l < q_; ++l)
            for (Size c = 0; c < k; ++c) to[l * m_ + index[c]] = from[l * k + c];
    }

    Point at(const Index& columns, const std::vector<double>& beta, const std::vector<double>& z_and_alpha) const {
        return {columns, beta.data(), z_and_alpha.data() + Size(columns.size()) * q_};
    }

    const Kernels* k_;
    std::unique_ptr<Rows> rows_;
    Penalty penalty_;
    const Settings set_;
    Chebyshev method_;
    const Size m_, q_, n_alpha_;  // columns, coefficients of each, unpenalised parameters

    State next_;
    Index everything_;
    Flags active_;  // columns, at the present state, of whose distances `entry_now_` tells
    std::vector<double> entry_now_, entry_then_, entry_expected_, moved_;
    // Of the live columns, then alpha, through a step.
    Recursion moving_;
    std::vector<double> start_, start_speed_, start_beta_, beta_, speed_, inside_, inside_beta_;
};

}  // namespace bregpath

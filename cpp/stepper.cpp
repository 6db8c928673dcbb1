#include "stepper.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace bregpath {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRateShare = 0.05, kEntryShare = 0.05, kFreezeGrowth = 1.2, kSafety = 0.8, kRateMargin = 1.15;
constexpr double kRounding = 1e-12, kNoise = 1e-6, kMinProgress = 3e-5, kSeen = 1e-300;
constexpr long kEntryFloor = 500;
constexpr int kMaxStages = 500, kRateSteps = 5, kBisections = 60, kMaxAttempts = 200;

// Coefficients of the Runge-Kutta-Chebyshev method; see _kernels/chebyshev.py.
struct Stages {
    double first;
    std::vector<double> mu, nu, mu1, gamma;
};

Stages make_stages(int s) {
    const double w0 = 1.0 + (2.0 / 13.0) / (double(s) * s);
    std::vector<double> T(s + 1), dT(s + 1), ddT(s + 1), b(s + 1), a(s + 1);
    T[0] = 1, T[1] = w0, dT[1] = 1;
    for (int j = 2; j <= s; ++j) {
        T[j] = 2 * w0 * T[j - 1] - T[j - 2];
        dT[j] = 2 * w0 * dT[j - 1] - dT[j - 2] + 2 * T[j - 1];
        ddT[j] = 2 * w0 * ddT[j - 1] - ddT[j - 2] + 4 * dT[j - 1];
    }
    const double w1 = dT[s] / ddT[s];
    for (int j = 2; j <= s; ++j) b[j] = ddT[j] / (dT[j] * dT[j]);
    b[0] = b[1] = b[2];
    for (int j = 0; j <= s; ++j) a[j] = 1.0 - b[j] * T[j];
    Stages c{b[1] * w1, std::vector<double>(s + 1), std::vector<double>(s + 1), std::vector<double>(s + 1),
             std::vector<double>(s + 1)};
    for (int j = 2; j <= s; ++j) {
        c.mu[j] = 2 * b[j] * w0 / b[j - 1];
        c.nu[j] = -b[j] / b[j - 2];
        c.mu1[j] = 2 * b[j] * w1 / b[j - 1];
        c.gamma[j] = -a[j - 1] * c.mu1[j];
    }
    return c;
}

const Stages& stages_of(int s) {
    thread_local std::map<int, Stages> cache;
    auto found = cache.find(s);
    if (found == cache.end()) found = cache.emplace(s, make_stages(s)).first;
    return found->second;
}

int stages_needed(double step_times_rate) {
    const double s = std::ceil(std::sqrt(1.0 + 1.54 * step_times_rate));
    return s < 2 ? 2 : s > 1e6 ? 1000000 : int(s);
}

double norm2(const std::vector<double>& v, size_t size) {
    double sum = 0;
    for (size_t i = 0; i < size; ++i) sum += v[i] * v[i];
    return sum;
}

}  // namespace

// --- the penalty -----------------------------------------------------------------------------------------------

double Penalty::allowed(double z, long i) const {
    if (!has_limits) return z;
    if (lower[i] == 0 && z < 0) z = 0;
    if (upper[i] == 0 && z > 0) z = 0;
    return z;
}

void Penalty::group_norms(const std::vector<int>& index, const double* z) {
    if (group.empty()) return;
    const long k = long(index.size());
    for (long c = 0; c < k; ++c) norms_[group[index[c]]] = 0.0;
    for (int l = 0; l < q; ++l)
        for (long c = 0; c < k; ++c) {
            const double a = allowed(z[l * k + c], long(l) * m + index[c]);
            norms_[group[index[c]]] += a * a;
        }
}

void Penalty::entry(const std::vector<int>& index, const double* z, double* out) {
    group_norms(index, z);
    const long k = long(index.size());
    for (int l = 0; l < q; ++l)
        for (long c = 0; c < k; ++c) {
            const long i = long(l) * m + index[c];
            const double size =
                group.empty() ? std::abs(allowed(z[l * k + c], i)) : std::sqrt(norms_[group[index[c]]]);
            out[l * k + c] = weights[i] == 0 ? -kInfinity : weights[i] - size;
        }
}

// b = clip(z r / (r + w)) with r the norm of b, by bisection; see GroupPenalty.primal.
void Penalty::boxed_groups(const std::vector<int>& index, const double* z, double kappa, double* beta) {
    const long k = long(index.size());
    const auto coordinate = [&](long c, int l, double r) {
        const long i = long(l) * m + index[c];
        const double w = weights[i], share = w == 0 ? 1.0 : std::isfinite(w) && r > 0 ? r / (r + w) : 0.0;
        return std::clamp(share * allowed(z[l * k + c], i), lower[i] / kappa, upper[i] / kappa);
    };
    for (long c = 0; c < k; ++c) {
        const int g = group[index[c]];
        low_[g] = 0;
        high_[g] = std::max(std::sqrt(norms_[g]) - weights[index[c]], 0.0);
    }
    for (int round = 0; round < kBisections; ++round) {
        for (long c = 0; c < k; ++c) norms_[group[index[c]]] = 0.0;
        for (int l = 0; l < q; ++l)
            for (long c = 0; c < k; ++c) {
                const int g = group[index[c]];
                const double b = coordinate(c, l, 0.5 * (low_[g] + high_[g]));
                norms_[g] += b * b;
            }
        for (long c = 0; c < k; ++c) {
            const int g = group[index[c]];
            if (norms_[g] < 0) continue;  // another column of the group was here
            const double middle = 0.5 * (low_[g] + high_[g]);
            (std::sqrt(norms_[g]) > middle ? low_[g] : high_[g]) = middle;
            norms_[g] = -1;
        }
    }
    for (int l = 0; l < q; ++l)
        for (long c = 0; c < k; ++c) {
            const long i = long(l) * m + index[c];
            const int g = group[index[c]];
            beta[l * k + c] = std::clamp(kappa * coordinate(c, l, 0.5 * (low_[g] + high_[g])), lower[i], upper[i]);
        }
}

void Penalty::primal(const std::vector<int>& index, const double* z, double kappa, double* beta) {
    group_norms(index, z);
    if (has_box && !group.empty()) {
        boxed_groups(index, z, kappa, beta);
        return;
    }
    const long k = long(index.size());
    for (int l = 0; l < q; ++l)
        for (long c = 0; c < k; ++c) {
            const long i = long(l) * m + index[c];
            const double a = allowed(z[l * k + c], i), w = weights[i];
            double b;
            if (group.empty()) {
                const double size = std::abs(a) - w;
                b = size > 0 ? std::copysign(size, a) : 0.0;
            } else {
                const double norm = std::sqrt(norms_[group[index[c]]]);
                b = w == 0 ? a : norm > w ? (1.0 - w / norm) * a : 0.0;
            }
            b *= kappa;
            if (has_limits) b = b < lower[i] ? lower[i] : b > upper[i] ? upper[i] : b;
            beta[l * k + c] = b;
        }
}

void Penalty::close(std::vector<char>& columns) const {
    if (group.empty()) return;
    std::vector<char> touched(n_groups, 0);
    for (int j = 0; j < m; ++j)
        if (columns[j]) touched[group[j]] = 1;
    for (int j = 0; j < m; ++j) columns[j] = touched[group[j]];
}

// --- the stepper -----------------------------------------------------------------------------------------------

Stepper::Stepper(const Kernels* kernels, std::unique_ptr<Rows> rows, Penalty penalty, double kappa, bool fit_intercept,
                 double fixed_step, double tol, bool linear_stages)
    : k_(kernels), rows_(std::move(rows)), penalty_(std::move(penalty)), kappa_(kappa), fixed_(fixed_step), tol_(tol),
      intercept_(fit_intercept), linear_(linear_stages && fixed_step == 0), n_(rows_->n), m_(penalty_.m),
      q_(penalty_.q), a_count_(rows_->n_alpha) {
    const size_t size = rows_->size, cols = size_t(m_) * q_;
    penalty_.prepare();
    for (int j = 0; j < m_; ++j) everything_.push_back(j);
    for (auto* v : {&state.alpha, &state.alpha_slope, &state.alpha_direction, &next_.alpha, &next_.alpha_slope,
                    &next_.alpha_direction, &alpha1_, &alpha2_, &speed_})
        v->assign(a_count_, 0.0);
    for (auto* v : {&state.z, &state.slope, &state.direction, &next_.z, &next_.slope, &next_.direction, &entry_now_,
                    &entry_then_, &moved_, &beta_, &g_, &v_, &a_, &b_, &z_live_, &slope_live_, &z1_, &z2_})
        v->assign(cols, 0.0);
    for (auto* v : {&state.R, &state.residual, &state.eta, &next_.R, &next_.residual, &next_.eta, &r_, &dR_, &R1_,
                    &R2_})
        v->assign(size, 0.0);
    if (linear_) {
        frozen.assign(size, 0.0);
        for (auto* v : {&integral1_, &integral2_, &beta0_}) v->assign(cols + a_count_, 0.0);
    }
}

void Stepper::set_frozen(std::vector<double> eta, double t) {
    if (t == frozen_t && eta == frozen) return;
    frozen.swap(eta), frozen_t = t;
    rows_->bend_at(frozen.data());
}

Stepper::Stepper(const Kernels* kernels, std::unique_ptr<RegressionRows> rows, Penalty penalty, double kappa,
                 bool fit_intercept, double fixed_step, double tol, const Gram& gram)
    : Stepper(kernels, std::unique_ptr<Rows>(std::move(rows)), std::move(penalty), kappa, fit_intercept, fixed_step,
              tol) {
    gram_ = gram;
    regression_ = static_cast<RegressionRows*>(rows_.get());
    for (auto* v : {&state.eta, &next_.eta, &r_, &dR_, &R1_, &R2_}) std::vector<double>().swap(*v);
    for (auto* v : {&state.beta_integral, &next_.beta_integral, &integral1_, &integral2_, &beta0_})
        v->assign(m_ + 1, 0.0);
    over_all_.assign(2 * size_t(m_), 0.0), pair_.assign(2 * size_t(m_), 0.0), position_.assign(m_, -1);
    R_base_.assign(n_, 0.0), u_.assign(2 * size_t(n_), 0.0);
    const Data& data = regression_->data();
    y_.assign(data.y, data.y + n_);
    for (long i = 0; data.offset && i < n_; ++i) y_[i] -= data.offset[i];
}

// Gram matrix times coefficients of the `live` columns (`count` sets of them), on the rows of all columns.
void Stepper::gram_product(const std::vector<int>& live, int count, const double* beta, double* out) {
    gram_pointers_.resize(live.size());
    for (size_t c = 0; c < live.size(); ++c) gram_pointers_[c] = gram_.matrix + live[c] * gram_.stride;
    multiply(gram_pointers_, m_, count, beta, out);
}

// The same on the rows of the live columns only. A compact copy of the part of the matrix that was ever used is kept,
// unless it is most of the matrix.
void Stepper::gram_product_live(const std::vector<int>& live, const double* beta, double* out) {
    for (int j : live) {
        if (position_[j] >= 0) continue;
        position_[j] = int(used_.size());
        used_.push_back(j);
        if (used_.size() > room_) {
            room_ = std::max<size_t>(64, 2 * used_.size());
            compact_.assign(room_ * room_, 0.0);
            for (size_t c = 0; c < used_.size(); ++c)
                for (size_t i = 0; i < used_.size(); ++i)
                    compact_[c * room_ + i] = gram_.matrix[used_[c] * gram_.stride + used_[i]];
        }
        const size_t last = used_.size() - 1;
        for (size_t i = 0; i <= last; ++i)
            compact_[last * room_ + i] = compact_[i * room_ + last] = gram_.matrix[j * gram_.stride + used_[i]];
    }
    gram_pointers_.resize(live.size());
    for (size_t c = 0; c < live.size(); ++c) gram_pointers_[c] = &compact_[position_[live[c]] * room_];
    multiply(gram_pointers_, long(used_.size()), 1, beta, over_all_.data());
    for (size_t c = 0; c < live.size(); ++c) out[c] = over_all_[position_[live[c]]];
}

void Stepper::multiply(const std::vector<const double*>& columns, long rows, int count, const double* beta,
                       double* out) const {
    static const double none[2] = {0, 0};
    Columns x{};
    x.n = rows, x.k = int(columns.size()), x.dense = columns.data();
    Data plain{};
    plain.q = count;
    k_->predict(x, plain, none, beta, out);
}

void Stepper::gather(const std::vector<int>& index, const std::vector<double>& from, std::vector<double>& to) const {
    const size_t k = index.size();
    for (int l = 0; l < q_; ++l)
        for (size_t c = 0; c < k; ++c) to[l * k + c] = from[size_t(l) * m_ + index[c]];
}

void Stepper::alpha_slope(const double* residual, double* out) const {
    rows_->totals(residual, out);
    for (int l = 0; l < a_count_; ++l) out[l] *= intercept_ ? -kappa_ : 0.0;
}

bool Stepper::above_rounding(double value) const {
    return !(value <= state.value + kRounding * (std::abs(state.value) + 1e-3));
}

std::vector<int> Stepper::active(const std::vector<double>& z, std::vector<double>& entry) {
    penalty_.entry(everything_, z.data(), entry.data());
    std::vector<int> index;
    for (int j = 0; j < m_; ++j)
        for (int l = 0; l < q_; ++l)
            if (entry[size_t(l) * m_ + j] < 0) {
                index.push_back(j);
                break;
            }
    return index;
}

void Stepper::begin() {
    if (gram_.matrix) {
        t_base_ = state.t;
        R_base_ = state.R;
        state.alpha_integral = 0;
        std::fill(state.beta_integral.begin(), state.beta_integral.end(), 0.0);
        return;
    }
    const auto index = active(state.z, entry_now_);
    gather(index, state.z, z_live_);
    penalty_.primal(index, z_live_.data(), kappa_, beta_.data());
    rows_->predict(index, state.alpha.data(), beta_.data(), state.eta.data());
}

void Stepper::update_rows() {
    if (!gram_.matrix || !regression_->has_columns()) return;
    penalty_.entry(everything_, state.z.data(), entry_now_.data());
    std::vector<int> index;
    for (int j = 0; j < m_; ++j)
        if (state.beta_integral[j] != 0 || entry_now_[j] < 0) index.push_back(j);
    const size_t k = index.size();
    gather(index, state.z, z_live_);
    penalty_.primal(index, z_live_.data(), kappa_, pair_.data());
    for (size_t c = 0; c < k; ++c) pair_[k + c] = state.beta_integral[index[c]];
    const double start[2] = {state.alpha[0], state.alpha_integral};
    regression_->products(index, 2, start, pair_.data(), u_.data());
    const double past = state.t - t_base_, *w = regression_->data().w;
    for (long i = 0; i < n_; ++i) {
        state.residual[i] = w[i] * (u_[i] - y_[i]);
        state.R[i] = R_base_[i] + w[i] * (u_[n_ + i] - y_[i] * past);
    }
}

// Loss and slopes of the live columns and the intercept (into g_, negated, and `slope`); rows only without a Gram
// matrix.
double Stepper::evaluate(const std::vector<int>& live, const double* alpha, const double* beta, double* eta, double* r,
                         double* slope, bool want_value) {
    pause(gram_.matrix ? double(live.size()) * live.size() : double(rows_->size) * (live.size() + 1));
    if (!gram_.matrix) {
        const double value = rows_->gradient(live, alpha, beta, eta, r, g_.data(), want_value);
        alpha_slope(r, slope);
        return value;
    }
    gram_product_live(live, beta, g_.data());
    double mean = alpha[0] - gram_.y_mean, spread = gram_.y_square;
    for (size_t c = 0; c < live.size(); ++c) mean += beta[c] * gram_.mean[live[c]];
    for (size_t c = 0; c < live.size(); ++c) {
        spread += beta[c] * (g_[c] - 2 * gram_.target[live[c]]);
        g_[c] += mean * gram_.mean[live[c]] - gram_.target[live[c]];
    }
    slope[0] = intercept_ ? -kappa_ * mean : 0.0;
    return 0.5 * (spread + mean * mean);
}

double Stepper::value(const double* alpha, const double* beta) {
    std::vector<int> used;
    for (int j = 0; j < m_; ++j)
        for (int l = 0; l < q_; ++l)
            if (beta[size_t(l) * m_ + j] != 0) {
                used.push_back(j);
                break;
            }
    for (int l = 0; l < q_; ++l)
        for (size_t c = 0; c < used.size(); ++c) beta_[l * used.size() + c] = beta[size_t(l) * m_ + used[c]];
    if (gram_.matrix) return evaluate(used, alpha, beta_.data(), nullptr, nullptr, speed_.data(), true);
    return rows_->value(used, alpha, beta_.data(), next_.eta.data(), r_.data());
}

void Stepper::step() {
    if (fixed_ > 0)
        fixed_step();
    else
        adaptive_step();
}

// Make the new state the present one.
void Stepper::commit() {
    if (gram_.matrix) {  // rows are brought up to date on demand: both states share theirs
        std::swap(state.R, next_.R);
        std::swap(state.residual, next_.residual);
    }
    std::swap(state, next_);
}

// The three lines.
void Stepper::fixed_step() {
    const double h = fixed_;
    if (gram_.matrix) {
        const auto before = active(state.z, entry_now_);
        gather(before, state.z, z_live_);
        penalty_.primal(before, z_live_.data(), kappa_, beta_.data());
        next_.beta_integral = state.beta_integral;
        for (size_t c = 0; c < before.size(); ++c) next_.beta_integral[before[c]] += h * beta_[c];
        next_.alpha_integral = state.alpha_integral + h * state.alpha[0];
        std::fill(integral1_.begin(), integral1_.end(), 0.0);  // not needed: z has moved already
    } else {
        for (size_t i = 0; i < state.R.size(); ++i) next_.R[i] = state.R[i] + h * state.residual[i];
    }
    for (int l = 0; l < a_count_; ++l) next_.alpha[l] = state.alpha[l] + h * state.alpha_slope[l];
    for (size_t i = 0; i < state.z.size(); ++i) next_.z[i] = state.z[i] + h * state.slope[i];
    const auto live = active(next_.z, entry_then_);
    gather(live, next_.z, z1_);
    penalty_.primal(live, z1_.data(), kappa_, beta_.data());
    next_.value = evaluate(live, next_.alpha.data(), beta_.data(), next_.eta.data(), next_.residual.data(),
                           next_.alpha_slope.data(), true);
    next_.t = state.t + h;
    moved_ = next_.z;  // finish() fills in the columns at rest by quadrature; here they moved like all others
    finish(live, h);
    std::swap(moved_, next_.z);
    if (above_rounding(next_.value)) {
        std::vector<char> support(m_, 0);
        for (int j : live) support[j] = 1;
        State at = state;
        const double rate = curvature_rate(support, 50, at);
        const double largest = 2.0 / (kappa_ * rate);
        if (h >= 0.999 * largest || !std::isfinite(rate)) throw Unstable{state.t, largest};
    }
    next_.h = next_.reach = h;
    next_.rate = state.rate, next_.age = state.age;
    next_.gradients = state.gradients + 1;
    next_.products = state.products + 2 * m_;
    next_.direction = state.direction, next_.alpha_direction = state.alpha_direction;
    commit();
}

// Shorten a step to end just after the first few expected entries, and tell which columns enter.
double Stepper::shorten_to_entry(double h, double slack, std::vector<char>& entering) {
    const size_t size = state.z.size();
    const auto look = [&](double length) {
        for (size_t i = 0; i < size; ++i) moved_[i] = state.z[i] + length * state.slope[i];
        penalty_.entry(everything_, moved_.data(), entry_then_.data());
    };
    look(h);
    std::vector<double> shares;
    long active = 0;
    for (size_t i = 0; i < size; ++i) {
        active += entry_now_[i] < 0;
        if (entry_now_[i] >= 0 && entry_then_[i] < 0)
            shares.push_back(entry_now_[i] / (entry_now_[i] - entry_then_[i]));
    }
    if (!shares.empty()) {
        const double counted = double(std::max(active - (linear_ ? 0 : kEntryFloor), 0L));
        const size_t together = std::min(size_t(kEntryShare * counted), shares.size() - 1);
        std::nth_element(shares.begin(), shares.begin() + together, shares.end());
        h = std::min(h, h * shares[together] + slack);
        look(h);
    }
    std::fill(entering.begin(), entering.end(), 0);
    for (size_t i = 0; i < size; ++i)
        if (entry_now_[i] >= 0 && entry_then_[i] < 0) entering[i % m_] = 1;
    return h;
}

// Whether many columns have started to move since the curvature was last looked at.
bool Stepper::has_many_new(const std::vector<char>& started) const {
    long known = 0, fresh = 0;
    for (int j = 0; j < m_; ++j) {
        bool seen = false;
        for (int l = 0; l < q_ && !seen; ++l) seen = state.direction[size_t(l) * m_ + j] != 0;
        known += seen;
        fresh += started[j] && !seen;
    }
    return double(fresh) > kRateShare * double(known);
}

// A step to ten significant bits, so that the rounding of sums does not grow from step to step.
static double round_down(double h) {
    int exponent;
    const double mantissa = std::frexp(h, &exponent);
    return std::ldexp(std::floor(1024 * mantissa), exponent - 10);
}

void Stepper::adaptive_step() {
    penalty_.entry(everything_, state.z.data(), entry_now_.data());
    std::vector<char> started(m_, 0), forced(m_, 0), entering(m_, 0), is_live(m_, 0);
    for (size_t i = 0; i < entry_now_.size(); ++i)
        if (entry_now_[i] < 0) started[i % m_] = 1;
    if (linear_ && state.t >= kFreezeGrowth * frozen_t) set_frozen(state.eta, state.t);
    next_.direction = state.direction, next_.alpha_direction = state.alpha_direction;
    next_.rate = state.rate, next_.age = state.age + 1;
    long gradients = state.gradients, products = state.products;
    if (next_.rate == 0 || next_.age >= kRateSteps || has_many_new(started)) {
        next_.rate = curvature_rate(started, 2, next_);
        next_.age = 0;
        products += 4 * std::count(started.begin(), started.end(), 1);
    }
    const double rate = kappa_ * kRateMargin * next_.rate;
    double h = state.h, reach = 0, earlier_rise = kInfinity;
    std::vector<int> live;
    for (int attempt = 0; attempt < kMaxAttempts && h > 1e-13 * state.t; ++attempt) {
        int stages = stages_needed(h * rate);
        if (stages > kMaxStages) {
            stages = kMaxStages;
            h = (double(stages) * stages - 1) / (1.54 * rate);
            if (h < kMinProgress * state.t) throw Stalled{state.t};
        }
        reach = std::max(reach, h);
        h = round_down(shorten_to_entry(h, 1.0 / rate, entering));
        stages = std::min(stages, stages_needed(h * rate));
        for (int j = 0; j < m_; ++j) is_live[j] = started[j] || entering[j] || forced[j];
        penalty_.close(is_live);
        live.clear();
        for (int j = 0; j < m_; ++j)
            if (is_live[j]) live.push_back(j);
        const bool finite = linear_ ? linear_step(h, stages, live) : chebyshev_step(h, stages, live);
        gradients += linear_ ? 1 : stages;
        products += 2 * stages * long(live.size()) + 2 * m_;
        if (!finite) {  // overflow: the local curvature is far from that at the knot
            h *= 0.2;
            continue;
        }
        const double worst = error(h, live), rise = next_.value - state.value;
        // A true rise c h^2 - d h falls by more than a factor of four when h is halved; that of rounding does not.
        const bool is_noise = rise <= kNoise * std::abs(state.value) && rise > 0.25 * earlier_rise;
        if (!(worst <= 1.0) || (above_rounding(next_.value) && !is_noise)) {
            if (linear_ && frozen_t < state.t) {  // that may be the fault of an old curvature
                set_frozen(state.eta, state.t);
                continue;
            }
            const double shorter = std::isfinite(worst) && worst > 0 ? kSafety / std::cbrt(worst) : 0.1;
            h *= std::min(0.5, std::max(0.1, shorter));
            earlier_rise = above_rounding(next_.value) ? rise : kInfinity;
            continue;
        }
        finish(live, h);
        penalty_.entry(everything_, next_.z.data(), entry_then_.data());
        bool missed = false;
        for (size_t i = 0; i < entry_then_.size(); ++i)
            if (entry_then_[i] < 0 && !is_live[i % m_]) forced[i % m_] = 1, missed = true;
        if (missed) continue;
        next_.h = h * std::min(3.0, std::max(0.3, kSafety / std::cbrt(std::max(worst, 1e-6))));
        next_.reach = reach;
        next_.gradients = gradients, next_.products = products;
        commit();
        return;
    }
    throw Stalled{state.t};
}

bool Stepper::chebyshev_step(double h, int stages, const std::vector<int>& live) {
    const Stages& c = stages_of(stages);
    const size_t k = live.size(), size = k * q_, rows = gram_.matrix ? 0 : size_t(rows_->size);
    gather(live, state.z, z_live_);
    gather(live, state.slope, slope_live_);
    alpha2_ = state.alpha;
    std::copy_n(z_live_.begin(), size, z2_.begin());
    for (int l = 0; l < a_count_; ++l) alpha1_[l] = state.alpha[l] + c.first * h * state.alpha_slope[l];
    for (size_t i = 0; i < size; ++i) z1_[i] = z_live_[i] + c.first * h * slope_live_[i];
    if (gram_.matrix) {  // integrals of (beta, alpha) over the step
        penalty_.primal(live, z_live_.data(), kappa_, beta0_.data());
        beta0_[k] = state.alpha[0];
        std::fill_n(integral2_.begin(), k + 1, 0.0);
        for (size_t i = 0; i <= k; ++i) integral1_[i] = c.first * h * beta0_[i];
    } else {
        std::copy(state.R.begin(), state.R.end(), R2_.begin());
        for (size_t i = 0; i < rows; ++i) R1_[i] = state.R[i] + c.first * h * state.residual[i];
    }
    for (int j = 2; j <= stages; ++j) {
        penalty_.primal(live, z1_.data(), kappa_, beta_.data());
        evaluate(live, alpha1_.data(), beta_.data(), next_.eta.data(), r_.data(), speed_.data(), false);
        double finite = 0;
        for (size_t i = 0; i < size; ++i) finite += g_[i];
        for (int l = 0; l < a_count_; ++l) finite += speed_[l];
        if (!std::isfinite(finite)) return false;
        const double keep = 1 - c.mu[j] - c.nu[j];
        if (gram_.matrix) {
            for (size_t i = 0; i <= k; ++i) {
                const double now = i < k ? beta_[i] : alpha1_[0];
                integral2_[i] = c.mu[j] * integral1_[i] + c.nu[j] * integral2_[i] +
                                h * (c.mu1[j] * now + c.gamma[j] * beta0_[i]);
            }
            std::swap(integral1_, integral2_);
        } else {
            const double cr[5] = {keep, c.mu[j], c.nu[j], h * c.mu1[j], h * c.gamma[j]};
            const double* ar[5] = {state.R.data(), R1_.data(), R2_.data(), r_.data(), state.residual.data()};
            k_->combine(long(rows), cr, ar, R2_.data());
            std::swap(R1_, R2_);
        }
        for (int l = 0; l < a_count_; ++l)
            alpha2_[l] = keep * state.alpha[l] + c.mu[j] * alpha1_[l] + c.nu[j] * alpha2_[l] +
                         h * (c.mu1[j] * speed_[l] + c.gamma[j] * state.alpha_slope[l]);
        // The new stage overwrites the one before the last.
        const double cz[5] = {keep, c.mu[j], c.nu[j], -h * c.mu1[j], h * c.gamma[j]};
        const double* az[5] = {z_live_.data(), z1_.data(), z2_.data(), g_.data(), slope_live_.data()};
        k_->combine(long(size), cz, az, z2_.data());
        std::swap(alpha1_, alpha2_), std::swap(z1_, z2_);
    }
    penalty_.primal(live, z1_.data(), kappa_, beta_.data());
    next_.value = evaluate(live, alpha1_.data(), beta_.data(), next_.eta.data(), next_.residual.data(),
                           next_.alpha_slope.data(), true);
    if (!std::isfinite(next_.value)) return false;
    next_.t = state.t + h;
    next_.alpha = alpha1_;
    if (gram_.matrix) {
        next_.beta_integral = state.beta_integral;
        for (size_t i = 0; i < k; ++i) next_.beta_integral[live[i]] += integral1_[i];
        next_.alpha_integral = state.alpha_integral + integral1_[k];
    } else {
        std::swap(next_.R, R1_);
    }
    return true;
}

// The same with the loss linearised: R follows from the integrals of the changes of beta and alpha.
bool Stepper::linear_step(double h, int stages, const std::vector<int>& live) {
    const Stages& c = stages_of(stages);
    const size_t size = live.size() * q_, all = size + a_count_;
    gather(live, state.z, z_live_);
    gather(live, state.slope, slope_live_);
    penalty_.primal(live, z_live_.data(), kappa_, beta0_.data());
    std::copy(state.alpha.begin(), state.alpha.end(), beta0_.begin() + size);
    alpha2_ = state.alpha;
    std::copy_n(z_live_.begin(), size, z2_.begin());
    for (int l = 0; l < a_count_; ++l) alpha1_[l] = state.alpha[l] + c.first * h * state.alpha_slope[l];
    for (size_t i = 0; i < size; ++i) z1_[i] = z_live_[i] + c.first * h * slope_live_[i];
    std::fill_n(integral1_.begin(), all, 0.0), std::fill_n(integral2_.begin(), all, 0.0);
    changed_.resize(all);
    for (int j = 2; j <= stages; ++j) {
        penalty_.primal(live, z1_.data(), kappa_, changed_.data());
        std::copy(alpha1_.begin(), alpha1_.end(), changed_.begin() + size);
        for (size_t i = 0; i < all; ++i) changed_[i] -= beta0_[i];
        pause(double(rows_->size));
        rows_->bend(live, &changed_[size], changed_.data(), g_.data(), speed_.data());
        const double keep = 1 - c.mu[j] - c.nu[j];
        for (size_t i = 0; i < all; ++i)
            integral2_[i] = c.mu[j] * integral1_[i] + c.nu[j] * integral2_[i] + h * c.mu1[j] * changed_[i];
        for (size_t i = 0; i < size; ++i)
            z2_[i] = keep * z_live_[i] + c.mu[j] * z1_[i] + c.nu[j] * z2_[i] +
                     h * (c.mu1[j] * (slope_live_[i] - g_[i]) + c.gamma[j] * slope_live_[i]);
        for (int l = 0; l < a_count_; ++l) {
            const double slope = state.alpha_slope[l] - (intercept_ ? kappa_ * speed_[l] : 0.0);
            alpha2_[l] = keep * state.alpha[l] + c.mu[j] * alpha1_[l] + c.nu[j] * alpha2_[l] +
                         h * (c.mu1[j] * slope + c.gamma[j] * state.alpha_slope[l]);
        }
        std::swap(integral1_, integral2_), std::swap(alpha1_, alpha2_), std::swap(z1_, z2_);
    }
    penalty_.primal(live, z1_.data(), kappa_, beta_.data());
    next_.value = rows_->value(live, alpha1_.data(), beta_.data(), next_.eta.data(), next_.residual.data());
    if (!std::isfinite(next_.value)) return false;
    alpha_slope(next_.residual.data(), next_.alpha_slope.data());
    next_.t = state.t + h;
    next_.alpha = alpha1_;
    rows_->bend_rows(live, &integral1_[size], integral1_.data(), dR_.data());
    for (size_t i = 0; i < dR_.size(); ++i) {
        dR_[i] += h * state.residual[i];
        next_.R[i] = state.R[i] + dR_[i];
    }
    rows_->dots(everything_, dR_.data(), next_.residual.data(), a_.data(), b_.data());
    gather(live, b_, g_);
    return true;
}

// z and slopes of all columns at the new state: live ones from z1_ and g_, the others by quadrature.
void Stepper::finish(const std::vector<int>& live, double h) {
    const size_t k = live.size();
    if (gram_.matrix)
        gram_finish(live, h);
    else if (linear_) {  // linear_step() has all products already
        for (size_t i = 0; i < a_.size(); ++i) {
            next_.z[i] = state.z[i] - a_[i];
            next_.slope[i] = -b_[i];
        }
    } else if (k < size_t(m_)) {
        std::vector<int> rest;
        for (int j = 0, i = 0; j < m_; ++j) {
            if (i < int(k) && live[i] == j)
                ++i;
            else
                rest.push_back(j);
        }
        for (size_t i = 0; i < state.R.size(); ++i) dR_[i] = next_.R[i] - state.R[i];
        rows_->dots(rest, dR_.data(), next_.residual.data(), a_.data(), b_.data());
        for (int l = 0; l < q_; ++l)
            for (size_t c = 0; c < rest.size(); ++c) {
                const size_t i = size_t(l) * m_ + rest[c];
                next_.z[i] = state.z[i] - a_[l * rest.size() + c];
                next_.slope[i] = -b_[l * rest.size() + c];
            }
    }
    for (int l = 0; l < q_; ++l)
        for (size_t i = 0; i < k; ++i) {
            next_.z[size_t(l) * m_ + live[i]] = z1_[l * k + i];
            next_.slope[size_t(l) * m_ + live[i]] = -g_[l * k + i];
        }
}

void Stepper::gram_finish(const std::vector<int>& live, double h) {
    const size_t k = live.size();
    std::copy_n(beta_.begin(), k, pair_.begin());
    std::copy_n(integral1_.begin(), k, pair_.begin() + k);
    gram_product(live, 2, pair_.data(), over_all_.data());
    double mean = next_.alpha[0] - gram_.y_mean, mean_integral = integral1_[k] - h * gram_.y_mean;
    for (size_t i = 0; i < k; ++i) {
        mean += pair_[i] * gram_.mean[live[i]];
        mean_integral += pair_[k + i] * gram_.mean[live[i]];
    }
    for (int j = 0; j < m_; ++j) {
        next_.slope[j] = gram_.target[j] - mean * gram_.mean[j] - over_all_[j];
        next_.z[j] = state.z[j] + h * gram_.target[j] - mean_integral * gram_.mean[j] - over_all_[m_ + j];
    }
}

// Error of the coefficients as a multiple of the tolerance, from the live columns as chebyshev_step() left them.
double Stepper::error(double h, const std::vector<int>& live) {
    const size_t k = live.size();
    penalty_.entry(live, z1_.data(), z2_.data());
    const auto size = [&](const std::vector<double>& beta) {
        double largest = 0;
        for (size_t i = 0; i < k * q_; ++i) largest = std::max(largest, std::abs(beta[i]));
        return largest;
    };
    double worst = 0, largest = size(beta_);
    penalty_.primal(live, z_live_.data(), kappa_, v_.data());
    largest = 0.5 * (largest + size(v_));
    for (int l = 0; l < q_; ++l)
        for (size_t c = 0; c < k; ++c) {
            const size_t i = l * k + c;
            if (!(entry_now_[size_t(l) * m_ + live[c]] < 0 || z2_[i] < 0)) continue;
            const double e = 0.8 * (z_live_[i] - z1_[i]) + 0.4 * h * (slope_live_[i] - g_[i]);
            worst = std::max(worst, kappa_ * std::abs(e));
        }
    for (int l = 0; l < a_count_; ++l) {
        const double e =
            0.8 * (state.alpha[l] - next_.alpha[l]) + 0.4 * h * (state.alpha_slope[l] + next_.alpha_slope[l]);
        worst = std::max(worst, std::abs(e));
    }
    return worst / (tol_ * std::max(largest, 1e-6 * kappa_));
}

double Stepper::curvature_rate(std::vector<char> columns, int iterations, State& at) {
    penalty_.close(columns);
    std::vector<int> index;
    for (int j = 0; j < m_; ++j)
        if (columns[j]) index.push_back(j);
    const size_t size = index.size() * q_;
    if (!gram_.matrix && !linear_) rows_->bend_at(state.eta.data());  // else the frozen curvature is that of the stages
    gather(index, at.direction, v_);
    gather(index, state.z, g_);
    double largest = 1e-3, largest_z = 0, rate = 0;
    for (size_t i = 0; i < size; ++i) {
        largest = std::max(largest, std::abs(v_[i]));
        largest_z = std::max(largest_z, std::abs(g_[i]));
    }
    for (size_t i = 0; i < size; ++i)
        if (v_[i] == 0) v_[i] = 0.1 * largest * (largest_z > 0 ? g_[i] / largest_z : 1.0);
    std::vector<double>& v0 = at.alpha_direction;
    std::vector<double> g0(a_count_);
    for (int k = 0; k < iterations; ++k) {
        const double norm = std::sqrt(norm2(v_, size) + norm2(v0, a_count_));
        if (!(norm > 0)) break;
        pause(double(rows_->size) * (index.size() + 1));
        for (size_t i = 0; i < size; ++i) v_[i] /= norm;
        for (auto& v : v0) v /= norm;
        if (gram_.matrix) {
            gram_product_live(index, v_.data(), g_.data());
            g0[0] = v0[0];
            for (size_t i = 0; i < size; ++i) g0[0] += v_[i] * gram_.mean[index[i]];
            for (size_t i = 0; i < size; ++i) g_[i] += g0[0] * gram_.mean[index[i]];
        } else {
            rows_->bend(index, v0.data(), v_.data(), g_.data(), g0.data());
        }
        std::copy_n(g_.begin(), size, v_.begin());
        for (int l = 0; l < a_count_; ++l) v0[l] = intercept_ ? g0[l] : 0.0;
        rate = std::sqrt(norm2(v_, size) + norm2(v0, a_count_));
    }
    if (intercept_) {  // intercepts that no column is coupled to: their own curvature
        if (gram_.matrix)
            rate = std::max(rate, 1.0);
        else {
            const std::vector<double> ones(a_count_, 1.0);
            rows_->bend({}, ones.data(), nullptr, nullptr, g0.data());
            for (const double g : g0) rate = std::max(rate, std::abs(g));
        }
    }
    std::fill(at.direction.begin(), at.direction.end(), 0.0);
    for (int l = 0; l < q_; ++l)
        for (size_t c = 0; c < index.size(); ++c) {
            const double v = v_[l * index.size() + c];
            at.direction[size_t(l) * m_ + index[c]] = v == 0 ? kSeen : v;
        }
    return std::max(rate, 1e-12);
}

}  // namespace bregpath

// Steps of squared loss by the exponential of the active Gram matrix: the compiled twin of
// bregpath/_kernels/exponential.py, which explains it. Coordinates are those of the columns, then that of the intercept.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

#include "arguments.hpp"
#include "columns.hpp"
#include "crossing.hpp"
#include "exponential_border.hpp"
#include "lookout.hpp"
#include "mover_inverse.hpp"
#include "vectors.hpp"

namespace {

using namespace bregpath;

const Kernels* kernels = nullptr;

struct Stalled {};

class Exponential {
   public:
    Exponential(nb::dict penalty, nb::dict block, nb::dict settings, nb::callable check)
        : arguments_(nb::make_tuple(penalty, block)), lookout_(std::move(check)), set_(Named("the settings", settings)),
          inverse_(read_inverse(Named("the block", block))) {
        const Named limits("the penalty", penalty), gram("the block", block);
        m_ = gram.length("gram_mean"), all_ = m_ + 1;
        mean_ = gram.numbers("gram_mean", {m_});
        std::tie(matrix_, stride_) = gram.square("gram", m_);
        fit_intercept_ = Named("the settings", settings).get<bool>("fit_intercept");
        const double *weights = limits.numbers("weights", {m_, 1}), *lower = limits.numbers("lower", {m_, 1}),
                     *upper = limits.numbers("upper", {m_, 1});
        for (auto* v : {&low_, &high_, &low_tie_, &high_tie_, &lowest_, &highest_, &z_, &slope_, &beta_}) v->resize(all_);
        for (Size j = 0; j < m_; ++j)
            low_[j] = lower[j] < 0 ? -weights[j] : -kInfinity, high_[j] = upper[j] > 0 ? weights[j] : kInfinity;
        high_[m_] = fit_intercept_ ? 0.0 : kInfinity, low_[m_] = -high_[m_];
        // Nothing is on an edge that there is not.
        const auto tie_at = [&](double edge) { return std::isfinite(edge) ? set_.tie * std::abs(edge) : -1.0; };
        std::transform(low_.begin(), low_.end(), low_tie_.begin(), tie_at);
        std::transform(high_.begin(), high_.end(), high_tie_.begin(), tie_at);
        require(set_.max_modes <= kMostDirections, "so many modes have no room");
        if (gram.has("outputs")) outputs_ = gram.get<Size>("outputs");
        if (block.contains("make_rows")) make_rows_ = block["make_rows"], has_row_.assign(m_, false), wait_.resize(m_);
    }

    // Steps from row 0 of the arrays until one reaches `until` or there are max_knots knots; there is room for a whole step
    // more, and none goes beyond `limit`. Of each step: its last knot, the next trial and the number of modes. Returns how
    // many, and what ended them.
    nb::tuple advance(nb::dict arrays, double h, double until, Size max_knots, double limit) {
        const Named to("the block", arrays);
        const Size rows = max_knots + set_.max_inner + 1;
        const Size integrals = to.length("integral", 1) > 0 ? all_ : 0;
        const ExponentialKnots knots{all_, integrals, to.array<double>("t", {rows}), to.array<double>("value", {rows}),
                                     to.array<double>("z", {rows, all_}), to.array<double>("slope", {rows, all_}),
                                     to.array<double>("integral", {rows, integrals})};
        double* trial = to.array<double>("h", {rows});
        int64_t *cuts = to.array<int64_t>("cuts", {rows}), *modes = to.array<int64_t>("modes", {rows});
        const char* trouble = "";
        Size steps = 0, last = 0;
        nb::gil_scoped_release nogil;
        try {
            while (knots.t[last] < until && last < max_knots) {
                const ExponentialKnots start = knots.from(last);
                load(start);
                require_rows();
                const double wished = rounded(std::max(h, set_.least_trial * *start.t));
                const double length = decompose(*start.t, std::min(wished, limit - *start.t));
                set_knots(length);
                const Size count = walk(start);
                h = (is_event_ ? set_.after_event : set_.after_none) * knots_[count - 1];
                last += count;
                cuts[steps] = last, trial[steps] = h, modes[steps] = k();
                ++steps;
            }
        } catch (const Stalled&) {
            trouble = "stalled";
        } catch (const nb::python_error& e) {
            nb::gil_scoped_acquire gil;
            if (steps == 0 || !e.matches(PyExc_KeyboardInterrupt)) throw;
            trouble = "interrupted";
        }
        nb::gil_scoped_acquire gil;
        return nb::make_tuple(steps, trouble);
    }

   private:
    static MoverInverse read_inverse(const Named& block) {
        const Size m = block.length("gram_mean");
        const auto [gram, stride] = block.square("gram", m);
        return {gram, stride, block.numbers("gram_mean", {m}), m};
    }

    double rounded(double h) const { return round_down(h, set_.step_bits, set_.nudge); }

    // The curvature below which nothing much happens in a step: a power of two, so that it hardly ever changes.
    double shift_at(double t) {
        const double rounding = set_.least_shift * inverse_.sum_of_curvatures(movers_);
        return round_down(std::max(set_.shift / (set_.kappa * t), rounding), 1, set_.nudge);
    }

    Size k() const { return Size(rates_.size()); }

    static Size lines(Size k) { return (k + 7) & ~Size(7); }  // from one mode to the next

    // --- the start of a step

    // Coordinates that are about on a threshold are put there; which move, and between which values each can go.
    void load(const ExponentialKnots& at) {
        std::copy_n(at.z, all_, z_.begin()), std::copy_n(at.slope, all_, slope_.begin());
        integral_.assign(at.integral, at.integral + at.integrals), value_ = *at.value;
        for (auto* x : {&z_, &slope_}) (*x)[m_] = set_.kappa * (*x)[m_] / set_.kappa;  // as another block would find it
        movers_.clear(), starting_.clear(), rows_.clear();
        double largest = 0;
        for (Size j = 0; j < all_; ++j) {
            if (std::abs(z_[j] - low_[j]) <= low_tie_[j]) z_[j] = low_[j];
            if (std::abs(z_[j] - high_[j]) <= high_tie_[j]) z_[j] = high_[j];
            const bool above = z_[j] > high_[j] || (z_[j] == high_[j] && slope_[j] > 0);
            const bool below = z_[j] < low_[j] || (z_[j] == low_[j] && slope_[j] < 0);
            const bool is_free = low_[j] == high_[j];
            lowest_[j] = is_free || below ? -kInfinity : above ? high_[j] : low_[j];
            highest_[j] = is_free || above ? kInfinity : below ? low_[j] : high_[j];
            beta_[j] = set_.kappa * (above ? z_[j] - high_[j] : below ? z_[j] - low_[j] : 0.0);
            if (!(is_free || above || below)) continue;
            if (!is_free && beta_[j] == 0) starting_.push_back(Size(movers_.size()));
            movers_.push_back(j);
            if (j == m_) continue;
            rows_.push_back({matrix_ + j * stride_});
            largest = std::max(largest, std::abs(beta_[j]));
        }
        allowed_ = set_.tol * std::max(largest, set_.least_scale * set_.kappa);
    }

    // Rows of the Gram matrix that are made when they are needed: Python is told when each column would move.
    void require_rows() {
        if (!make_rows_.is_valid() || std::all_of(movers_.begin(), movers_.end(), [&](Size j) { return j == m_ || has_row_[j]; }))
            return;
        for (Size j = 0; j < m_; ++j)
            wait_[j] = slope_[j] == 0 ? kInfinity : ((slope_[j] > 0 ? highest_[j] : lowest_[j]) - z_[j]) / slope_[j];
        for (const Size j : movers_)
            if (j < m_) wait_[j] = 0, has_row_[j] = true;
        nb::gil_scoped_acquire gil;
        make_rows_(nb::ndarray<nb::numpy, const double, nb::ndim<1>>(wait_.data(), {size_t(m_)}, nb::handle()));
    }

    // Modes with which coefficients err by little up to some length, which is returned.
    double decompose(double t, double length) {
        for (double shift = shift_at(t); length >= set_.least_step * t; length /= set_.shorter, shift *= set_.shorter) {
            inverse_.follow(kernels, movers_, shift);
            if (find_modes(length)) return find_images(), length;
        }
        throw Stalled();
    }

    // The Gram matrix of all columns times the modes: of these there are no more than of products at two or three knots.
    void find_images() {
        const Size columns = Size(rows_.size());
        lookout_(double(k()) * double(m_) * double(columns));
        sums_.resize(k() * columns), images_.resize(k() * m_);
        for (Size i = 0; i < k(); ++i) std::copy_n(&moves_[i * inverse_.size()], columns, &sums_[i * columns]);
        multiply(kernels, rows_, m_, k(), sums_.data(), images_.data());
    }

    // Lanczos' method; not where it takes too many of them, or no number of them will do.
    bool find_modes(double length) {
        const Size size = inverse_.size();
        basis_.resize(set_.max_modes * size), rest_.assign(size, 0.0);
        diagonal_.clear(), off_.clear(), rates_.clear();
        for (size_t i = 0; i < movers_.size(); ++i) rest_[i] = slope_[movers_[i]];
        find_whole();
        take_means_off();
        const double speed = std::sqrt(dot(rest_.data(), rest_.data(), size));
        double left = speed;
        for (bool is_enough = speed == 0; !is_enough;) {
            const Size k = Size(diagonal_.size());
            if (k == set_.max_modes) return false;
            lookout_(double(size) * double(size));
            if (k > 0) off_.push_back(left);
            diagonal_.push_back(0);
            left = kernels->next_direction(size, inverse_.matrix(), inverse_.stride(), basis_.data(), k, left, rest_.data(),
                                           &diagonal_[k]);
            if (!std::isfinite(left)) return false;
            take_means_off();
            is_enough = are_enough(left, speed, length);
        }
        return true;
    }

    // Where columns begin among the movers that move with all their outputs.
    void find_whole() {
        whole_.clear();
        const Size count = Size(movers_.size()), last = outputs_ - 1;
        for (Size i = 0; last > 0 && i + last < count; ++i)
            if (movers_[i] % outputs_ == 0 && movers_[i + last] == movers_[i] + last) whole_.push_back(i);
    }

    // Of outputs that move together only rounding moves the mean, and nothing damps it.
    void take_means_off() {
        for (const Size i : whole_) {
            const double mean = std::accumulate(&rest_[i], &rest_[i] + outputs_, 0.0) / double(outputs_);
            for (Size l = 0; l < outputs_; ++l) rest_[i + l] -= mean;
        }
    }

    // By how much a direction moves the mean of the predictor.
    double mean_along(const double* v) const { return dot(inverse_.means(), v, inverse_.size()); }

    // Whether the modes so far will do, and if so in which directions they move coefficients.
    bool are_enough(double left, double speed, double length) {
        const Size k = Size(diagonal_.size()), stride = lines(k), size = inverse_.size();
        const double sum = std::accumulate(diagonal_.begin(), diagonal_.end(), 0.0);
        const bool is_all = k == Size(movers_.size()) || left <= set_.breakdown * sum;
        if (!is_all && k < set_.max_modes && k % (1 + k / set_.seldom) != 0) return false;  // not worth a look
        rates_ = diagonal_, spare_ = off_;
        spare_.resize(k), mix_.resize(k * stride), tail_.resize(k);
        kernels->diagonalise(k, rates_.data(), spare_.data(), mix_.data());
        for (Size i = 0; i < k; ++i) {
            const double first = speed * mix_[i * stride];
            for (Size c = 0; c < stride; ++c) mix_[i * stride + c] *= first;
            tail_[i] = mix_[i * stride + k - 1] / rates_[i];
            rates_[i] = set_.kappa * std::max(1 / rates_[i] - inverse_.shift(), 0.0);
        }
        if (!is_all && (left * most_of_tail(length) > set_.mode_share * allowed_ || !start_well())) return false;
        moves_.resize(k * size);
        kernels->combine_rows(basis_.data(), size, k, mix_.data(), stride, k, moves_.data());
        for (Size i = 0; i < k && !is_all; ++i) add(tail_[i], rest_.data(), &moves_[i * size], size);
        return true;
    }

    // Whether coefficients that begin at zero do so about as fast as their slopes say. One that went the other way would be at rest
    // at once, and begin again, without end.
    bool start_well() const {
        const double speed = std::accumulate(tail_.begin(), tail_.end(), 0.0);  // along what is left of the product
        return std::all_of(starting_.begin(), starting_.end(), [&](Size i) {
            return std::abs(rest_[i] * speed) <= set_.start_share * std::abs(slope_[movers_[i]]);
        });
    }

    // The most that what is left of a product adds to coefficients within a step, as seen where its modes have decayed.
    double most_of_tail(double length) {
        double most = 0;
        for (Size i = 0; i <= k(); ++i) {
            const Decay share = decay(i < k() ? 1 / std::max(rates_[i], 1 / length) : length);
            most = std::max(most, std::abs(set_.kappa * dot(share.change, tail_.data(), k())));
        }
        return most;
    }

    // The integral of what is left of each mode after a time, and that of the integral: they lie in this order.
    struct Decay {
        double *change, *past;
    };
    Decay decay(double tau) {
        const Decay to{decays_.data(), &decays_[kMostDirections]};
        kernels->decay(k(), rates_.data(), tau, to.change, to.past);
        return to;
    }

    // Times between which a cubic errs by little.
    void set_knots(double length) {
        const double allowed = set_.knot_share * allowed_;
        bends_.clear(), bent_.clear();
        for (Size i = 0; i < k(); ++i) {
            const double speed = set_.kappa * largest_of(&moves_[i * inverse_.size()], Size(movers_.size()), 0.0), rate = rates_[i];
            // What is negligible altogether may be rounding, which must not decide.
            if (speed > set_.negligible * allowed * rate) bends_.push_back(speed * rate * rate * rate / 384), bent_.push_back(rate);
        }
        knots_.clear();
        for (double tau = 0; tau < length && Size(knots_.size()) < set_.max_inner; knots_.push_back(tau)) {
            double curvature = 0;
            for (size_t i = 0; i < bends_.size(); ++i) curvature += bends_[i] * std::exp(-bent_[i] * tau);
            tau = curvature > 0 ? std::min(tau + rounded(std::pow(allowed / curvature, 0.25)), length) : length;
        }
    }

    // --- its knots

    // From knot to knot, up to the first event; how many there are.
    Size walk(const ExponentialKnots& start) {
        is_event_ = false;
        Size count = 0;
        for (; count < Size(knots_.size()) && !is_event_; ++count) {
            const ExponentialKnots to = start.from(count + 1);
            place(knots_[count], to);
            const double before = count > 0 ? knots_[count - 1] : 0.0;
            // Beyond at the event of those that are beyond at the knot may be one that has come back by then.
            for (double tie = 0; is_beyond(to.z, tie); tie = set_.tie) {
                const double event = first_event(before, knots_[count]);
                if (is_event_ && event == knots_[count]) break;  // what is beyond is rounding
                is_event_ = true;
                place(knots_[count] = event, to);
            }
            if (is_event_) {
                if (const double least = set_.least_step * *start.t; knots_[count] < least) place(knots_[count] = least, to);
                for (Size j = 0; j < all_; ++j) to.z[j] = std::min(std::max(to.z[j], lowest_[j]), highest_[j]);
            }
            *to.t = *start.t + knots_[count];
        }
        return count;
    }

    // Whether coordinates are beyond their bounds, and which.
    bool is_beyond(const double* z, double tie) {
        crossing_.clear();
        if (!(kernels->farthest(all_, z, lowest_.data(), highest_.data()) > 0)) return false;
        for (Size j = 0; j < all_; ++j)
            if (std::max(z[j] - highest_[j], lowest_[j] - z[j]) > tie * std::abs(z[j])) crossing_.push_back(j);
        return !crossing_.empty();
    }

    // All coordinates, slopes and integrals, and the loss, at a time after the start of the step.
    void place(double tau, const ExponentialKnots& to) {
        const Size size = inverse_.size();
        const Decay share = decay(tau);  // of the moves, in the change of coefficients and in its integral
        for (Size i = 0; i < k(); ++i) share.change[i] *= set_.kappa, share.past[i] *= set_.kappa;
        on_movers_.resize(2 * size);
        kernels->combine_rows(moves_.data(), size, k(), share.change, kMostDirections, 2, on_movers_.data());
        const double u = mean_along(on_movers_.data()), past = mean_along(on_movers_.data() + size);
        kernels->coast(m_, tau, z_.data(), slope_.data(), k(), images_.data(), share.change, share.past, mean_, u, past, to.z, to.slope);
        to.slope[m_] = slope_[m_] - (fit_intercept_ ? u : 0.0), to.z[m_] = z_[m_] + tau * slope_[m_];
        std::copy(integral_.begin(), integral_.end(), to.integral);
        *to.value = value_;
        for (size_t i = 0; i < movers_.size(); ++i) {
            const Size j = movers_[i];
            to.z[j] = z_[j] + on_movers_[i] / set_.kappa;
            if (to.integrals > 0) to.integral[j] += tau * beta_[j] + on_movers_[size + i];
            *to.value -= 0.5 * on_movers_[i] * (slope_[j] + to.slope[j]);
        }
    }

    // When the first of the crossing coordinates gets beyond its bounds.
    double first_event(double low, double high) {
        follow_crossing();
        return first_crossing([&](double tau) { return beyond(tau); }, low, high, set_.max_root, set_.rounding);
    }

    // The sums of exponentials of the crossing coordinates alone: of changes where they move, of integrals where not.
    void follow_crossing() {
        const Size size = inverse_.size();
        sums_.resize(crossing_.size() * k()), spare_.resize(k());
        for (Size i = 0; i < k(); ++i) spare_[i] = mean_along(&moves_[i * size]);
        for (size_t q = 0; q < crossing_.size(); ++q) {
            const Size j = crossing_[q];
            const auto found = std::lower_bound(movers_.begin(), movers_.end(), j);
            const bool moves = found != movers_.end() && *found == j;
            const Size at = Size(found - movers_.begin());
            for (Size i = 0; i < k(); ++i)
                sums_[q * k() + i] = moves ? moves_[i * size + at] : images_[i * m_ + j] + spare_[i] * mean_[j];
        }
    }

    double beyond(double tau) {
        const Decay share = decay(tau);
        double largest = -kInfinity;
        for (size_t q = 0; q < crossing_.size(); ++q) {
            const Size j = crossing_[q];
            const bool moves = std::binary_search(movers_.begin(), movers_.end(), j);
            const double sum = dot(&sums_[q * k()], moves ? share.change : share.past, k());
            const double z = moves ? z_[j] + sum : z_[j] + tau * slope_[j] - set_.kappa * sum;
            largest = std::max(largest, std::max(z - highest_[j], lowest_[j] - z));
        }
        return largest;
    }

    nb::object arguments_;  // whose arrays are in use
    nb::object make_rows_;  // if they are not all there
    std::vector<bool> has_row_;
    std::vector<double> wait_;
    Lookout lookout_;
    ExponentialSettings set_;
    Size m_ = 0, all_ = 0, stride_ = 0;
    const double *matrix_ = nullptr, *mean_ = nullptr;
    bool fit_intercept_ = true, is_event_ = false;
    std::vector<double> low_, high_;          // between which values a coordinate has no coefficient
    std::vector<double> low_tie_, high_tie_;  // closer to them it is on them
    // At the start of a step.
    double allowed_ = 0, value_ = 0;
    std::vector<double> z_, slope_, beta_, integral_;
    std::vector<double> lowest_, highest_;  // between which values a coordinate goes
    std::vector<Size> movers_, crossing_;
    Size outputs_ = 1;  // columns, side by side, that are outputs of one of which only differences count; 1: none are
    std::vector<Size> whole_;  // of the movers, the first of all outputs of a column
    std::vector<Size> starting_;  // of the movers, those that begin at zero
    std::vector<Column> rows_;  // of the Gram matrix
    MoverInverse inverse_;
    // Its modes.
    Aligned basis_, rest_, moves_, on_movers_;
    std::vector<double> images_;  // of the moves, by the Gram matrix
    std::vector<double> diagonal_, off_, rates_, mix_, tail_;
    std::vector<double> bends_, bent_, knots_;
    std::vector<double> sums_, spare_;
    std::vector<double> decays_ = std::vector<double>(2 * kMostDirections);
};

}  // namespace

void bind_exponential(nb::module_& m, const Kernels* chosen) {
    kernels = chosen;
    nb::class_<Exponential>(m, "Exponential", "Squared loss by exponentials, from event to event.")
        .def(nb::init<nb::dict, nb::dict, nb::dict, nb::callable>(), nb::kw_only(), nb::arg("penalty"), nb::arg("block"),
             nb::arg("settings"), nb::arg("check"))
        .def("advance", &Exponential::advance, nb::arg("arrays"), nb::arg("h"), nb::arg("until"), nb::arg("max_knots"),
             nb::arg("limit"));
}

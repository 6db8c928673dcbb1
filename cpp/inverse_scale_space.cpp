// Inverse scale space for squared loss, from event to event: the compiled twin of bregpath/_kernels/restricted.py and
// inverse_scale_space.py, which explain it. With the Gram matrix E of the columns a Newton step is exact, and the Cholesky
// factor of the members is updated instead of made anew.
#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <vector>

#include "arguments.hpp"
#include "compact_gram.hpp"
#include "vectors.hpp"

namespace {

using namespace bregpath;

const Kernels* kernels = nullptr;

struct Singular {};  // columns depend on each other: the reference knows what to do
struct Stalled {};

// The Cholesky factor L of the members' part of the matrix E, and what it makes of their rows, V = L^-1 E[members, :],
// both row by row. V has the products that a new member needs, and those that a step of the newest one causes: one row.
class Factor {
   public:
    Size size() const { return Size(rows_.size()); }

    void clear() { rows_.clear(), reduced_.clear(), columns_.clear(); }

    // A new last member: its number and its row of the matrix. False if it depends on the others.
    bool append(Size item, const double* row, Size width, double singular) {
        std::vector<double> entries, fresh(width);
        entries.reserve(rows_.size() + 1);
        for (const auto& v : reduced_) entries.push_back(v[item]);
        multiply(kernels, columns_, width, 1, entries.data(), fresh.data());
        const double pivot = row[item] - fresh[item];
        if (!(pivot > singular * row[item])) return false;
        const double root = std::sqrt(pivot);
        for (Size i = 0; i < width; ++i) fresh[i] = (row[i] - fresh[i]) / root;
        entries.push_back(root);
        rows_.push_back(std::move(entries)), reduced_.push_back(std::move(fresh));
        columns_.push_back({reduced_.back().data()});
        return true;
    }

    // Without one row, what is left is one diagonal too many, which rotations of neighbouring columns remove.
    void remove(Size at) {
        rows_.erase(rows_.begin() + at);
        for (Size j = at; j < size(); ++j) {
            const double x = rows_[j][j], y = rows_[j][j + 1], length = std::hypot(x, y), c = x / length, s = y / length;
            for (Size i = j; i < size(); ++i) rotate(c, s, &rows_[i][j], &rows_[i][j + 1], 1);
            rows_[j].pop_back();
            rotate(c, s, reduced_[j].data(), reduced_[j + 1].data(), Size(reduced_[j].size()));
        }
        reduced_.pop_back(), columns_.pop_back();
    }

    // x = L^-1 x, returning the number of zeros before the first other entry: only the newest member may have a slope.
    Size forward(double* x) const {
        Size first = 0;
        while (first < size() && x[first] == 0) ++first;
        for (Size i = first; i < size(); ++i)
            x[i] = (x[i] - dot(&rows_[i][first], x + first, i - first)) / rows_[i][i];
        return first;
    }

    // x = L'^-1 x.
    void backward(double* x) const {
        for (Size i = size() - 1; i >= 0; --i) x[i] /= rows_[i][i], add(-x[i], rows_[i].data(), x, i);
    }

    // x = L' x.
    void times_transpose(double* x) const {
        for (Size i = 0; i < size(); ++i) {
            const double value = x[i];
            x[i] = 0, add(value, rows_[i].data(), x, i + 1);
        }
    }

    // out = V' x for an x that begins with `first` zeros.
    void spread(const double* x, Size first, double* out, Size width) const {
        multiply(kernels, std::span(columns_).subspan(first), width, 1, x + first, out);
    }

   private:
    static void rotate(double c, double s, double* x, double* y, Size n) {
#pragma omp simd
        for (Size i = 0; i < n; ++i) {
            const double a = x[i], b = y[i];
            x[i] = c * a + s * b, y[i] = c * b - s * a;
        }
    }

    std::vector<std::vector<double>> rows_, reduced_;  // L and V
    std::vector<Column> columns_;                      // the rows of V as the kernels take them
};

struct Limits {
    const double *weights, *lower, *upper;
};

class InverseScaleSpace {
   public:
    InverseScaleSpace(nb::dict penalty, nb::dict block, nb::dict settings) : arguments_(nb::make_tuple(penalty, block)) {
        const Named limits("the penalty", penalty), gram("the block", block), set("the settings", settings);
        m_ = gram.length("gram_mean");
        limits_ = {limits.numbers("weights", {m_, 1}), limits.numbers("lower", {m_, 1}), limits.numbers("upper", {m_, 1})};
        mean_ = gram.numbers("gram_mean", {m_});
        const double* target = gram.numbers("gram_target", {m_});
        target_.assign(target, target + m_);
        y_mean_ = gram.get<double>("y_mean"), square_ = gram.get<double>("y_square");
        std::tie(matrix_, stride_) = gram.square("gram", m_);
        fit_intercept_ = set.get<bool>("fit_intercept");
        if (!fit_intercept_) about_zero();
        scale_ = set.get<double>("scale"), enough_ = set.get<double>("enough");
        tol_ = set.get<double>("TOL") * scale_, noise_ = set.get<double>("NOISE") * scale_;
        singular_ = set.get<double>("SINGULAR"), tie_ = set.get<double>("TIE"), tied_ = set.get<double>("TIED");
        max_steps_ = set.get<Size>("MAX_STEPS");
        for (auto* v : {&low_, &high_, &lo_, &hi_, &speed_, &product_, &waits_}) v->resize(m_);
        for (Size i = 0; i < m_; ++i) {
            low_[i] = limits_.lower[i] < 0 ? -limits_.weights[i] : -kInfinity;
            high_[i] = limits_.upper[i] > 0 ? limits_.weights[i] : kInfinity;
        }
    }

    // Up to max_steps events after row 0 of the arrays, none beyond `limit`, where the last step ends if it is not infinite.
    // Returns how many, what ended them, and the solutions it took.
    nb::tuple advance(nb::dict arrays, double until, double limit, Size max_steps) {
        const Named to("the block", arrays);
        const Size rows = max_steps + 1;
        double *t = to.array<double>("t", {rows}), *alpha = to.array<double>("alpha", {rows, 1});
        double *value = to.array<double>("value", {rows}), *rho = to.array<double>("rho", {rows, m_, 1});
        double *beta = to.array<double>("beta", {rows, m_, 1}), *slope = to.array<double>("slope", {rows, m_, 1});
        nb::gil_scoped_release nogil;
        Size done = 0;
        const char* trouble = "";
        solutions_ = 0;
        try {
            load(rho, beta);
            for (double now = t[0]; done < max_steps && now < until;) {
                now = to_next_event(now, until, limit);
                ++done;
                t[done] = now, alpha[done] = intercept(), value[done] = loss();
                std::copy(rho_.begin(), rho_.end(), rho + done * m_);
                std::copy(beta_.begin(), beta_.end(), beta + done * m_);
                std::copy(slope_.begin(), slope_.end(), slope + done * m_);
            }
        } catch (const Singular&) {
            trouble = "singular", factor_.clear(), members_.clear();
        } catch (const Stalled&) {
            trouble = "stalled", factor_.clear(), members_.clear();
        }
        nb::gil_scoped_acquire gil;
        return nb::make_tuple(done, trouble, solutions_);
    }

   private:
    // Without an intercept moments are about zero.
    void about_zero() {
        own_.resize(m_ * m_);
        for (Size i = 0; i < m_; ++i)
            for (Size j = 0; j < m_; ++j) own_[i * m_ + j] = matrix_[i * stride_ + j] + mean_[i] * mean_[j];
        for (Size i = 0; i < m_; ++i) target_[i] += mean_[i] * y_mean_;
        square_ += y_mean_ * y_mean_;
        matrix_ = own_.data(), stride_ = m_;
    }

    double intercept() const { return fit_intercept_ ? y_mean_ - dot(mean_, beta_.data(), m_) : 0.0; }

    double loss() const {
        return 0.5 * (square_ - dot(beta_.data(), target_.data(), m_) - dot(beta_.data(), slope_.data(), m_));
    }

    void load(const double* rho, const double* beta) {
        rho_.assign(rho, rho + m_), beta_.assign(beta, beta + m_);
        set_bounds();
        std::vector<Size> wanted;
        for (Size i = 0; i < m_; ++i)
            if (is_inside(i)) wanted.push_back(i);
        std::vector<Size> known = members_;
        std::sort(known.begin(), known.end());
        if (known != wanted) {
            factor_.clear(), members_.clear();
            for (const Size i : wanted) add(i);
        }
        // Coefficients at a limit other than zero are no members.
        slope_ = target_;
        for (Size i = 0; i < m_; ++i)
            if (beta_[i] != 0 && !is_inside(i))
                for (Size j = 0; j < m_; ++j) slope_[j] -= matrix_[i * stride_ + j] * beta_[i];
        reduced_.clear();
        for (const Size i : members_) reduced_.push_back(beta_[i]);
        factor_.times_transpose(reduced_.data());
        follow(1.0, 0);
    }

    bool is_inside(Size i) const { return lo_[i] < beta_[i] && beta_[i] < hi_[i]; }

    void set_bounds() {
        for (Size i = 0; i < m_; ++i) {
            const double lower = limits_.lower[i], upper = limits_.upper[i];
            lo_[i] = rho_[i] > high_[i] ? upper : rho_[i] <= low_[i] ? lower : 0.0;
            hi_[i] = rho_[i] < low_[i] ? lower : rho_[i] >= high_[i] ? upper : 0.0;
        }
    }

    double to_next_event(double now, double until, double limit) {
        const double begin = now;
        for (bool is_event = true; is_event && !(now > begin * (1 + tie_));) {
            set_bounds();
            minimise();
            double wait = kInfinity;
            for (Size i = 0; i < m_; ++i) {
                const bool held = lo_[i] == hi_[i] || (beta_[i] == lo_[i] && slope_[i] < -noise_) ||
                                  (beta_[i] == hi_[i] && slope_[i] > noise_);
                speed_[i] = held ? slope_[i] : 0.0;
                wait = std::min(wait, waits_[i] = arrival(i));
            }
            is_event = now + wait <= limit && std::isfinite(wait);
            const double goal = is_event ? now + wait : std::isfinite(limit) ? limit : until;
            if (!std::isfinite(goal)) throw Stalled();
            if (!is_event) wait = goal - now;
            for (Size i = 0; i < m_; ++i) {
                const bool arrives = is_event && waits_[i] <= wait + tie_ * now;
                rho_[i] += wait * speed_[i];
                if (arrives) rho_[i] = std::abs(rho_[i] - high_[i]) < std::abs(rho_[i] - low_[i]) ? high_[i] : low_[i];
            }
            now = goal;
        }
        return now;
    }

    // Time until a coordinate reaches the next threshold on its way.
    double arrival(Size i) const {
        const double v = speed_[i];
        if (v == 0) return kInfinity;
        const double ahead = v > 0 ? (rho_[i] < low_[i] ? low_[i] : high_[i]) : (rho_[i] > high_[i] ? high_[i] : low_[i]);
        const bool is_ahead = v > 0 ? rho_[i] < ahead : rho_[i] > ahead;
        return is_ahead && std::isfinite(ahead) ? (ahead - rho_[i]) / v : kInfinity;
    }

    // --- the optimum inside bounds

    void minimise() {
        Size budget = max_steps_;
        bool together = true;
        while (true) {
            converge(budget);
            double strongest = 0;
            for (Size i = 0; i < m_; ++i) strongest = std::max(strongest, pull(i));
            if (loss() <= enough_ || strongest <= noise_) return;
            const Size before = Size(members_.size());
            for (Size i = 0; i < m_; ++i)
                if (pull(i) >= (1 - tied_) * strongest && (together || Size(members_.size()) == before)) add(i);
            together = true;
            if (Size(members_.size()) > before + 1 && !all_leave(before)) {
                while (Size(members_.size()) > before) remove(Size(members_.size()) - 1);
                together = false;
            }
        }
    }

    // How strongly a coordinate is pulled off its bound.
    double pull(Size i) const {
        if (lo_[i] == hi_[i]) return 0.0;
        return beta_[i] == lo_[i] ? slope_[i] : beta_[i] == hi_[i] ? -slope_[i] : 0.0;
    }

    bool all_leave(Size from) {
        solve();
        for (size_t k = size_t(from); k < members_.size(); ++k)
            if (!(step_[k] * slope_[members_[k]] > 0)) return false;
        return true;
    }

    void converge(Size& budget) {
        double before = kInfinity;
        while (loss() > enough_) {
            double size = 0;
            for (const Size i : members_) size = std::max(size, std::abs(slope_[i]));
            if (size <= tol_ || (size > 0.5 * before && size <= noise_)) return;
            if (--budget < 0) throw Stalled();
            const Size first = solve();
            double share = 1.0;
            for (size_t k = 0; k < members_.size(); ++k) share = std::min(share, share_to_bound(k));
            std::vector<Size> met;
            for (size_t k = 0; k < members_.size(); ++k)
                if (share_to_bound(k) <= share) met.push_back(Size(k));
            std::vector<double> bounds;
            for (const Size k : met) bounds.push_back(step_[k] < 0 ? lo_[members_[k]] : hi_[members_[k]]);
            for (size_t k = 0; k < members_.size(); ++k) beta_[members_[k]] += share * step_[k];
            follow(share, first);
            for (size_t at = met.size(); at-- > 0;) beta_[members_[met[at]]] = bounds[at], remove(met[at]);
            before = met.empty() ? size : kInfinity;
        }
    }

    double share_to_bound(size_t k) const {
        const Size i = members_[k];
        if (step_[k] == 0) return kInfinity;
        return ((step_[k] < 0 ? lo_[i] : hi_[i]) - beta_[i]) / step_[k];
    }

    // The step to the optimum of the members, and how many of its reduced numbers are zero.
    Size solve() {
        reduced_.clear();
        for (const Size i : members_) reduced_.push_back(slope_[i]);
        const Size first = factor_.forward(reduced_.data());
        step_ = reduced_;
        factor_.backward(step_.data());
        ++solutions_;
        return first;
    }

    // The slopes after a share of the step that `reduced_` stands for.
    void follow(double share, Size first) {
        factor_.spread(reduced_.data(), first, product_.data(), m_);
        bregpath::add(-share, product_.data(), slope_.data(), m_);
    }

    void add(Size i) {
        if (!factor_.append(i, &matrix_[i * stride_], m_, singular_)) throw Singular();
        members_.push_back(i);
    }

    void remove(Size at) {
        factor_.remove(at);
        members_.erase(members_.begin() + at);
    }

    nb::object arguments_;  // whose arrays are in use
    Size m_ = 0, stride_ = 0, max_steps_ = 0, solutions_ = 0;
    Limits limits_{};
    const double *matrix_ = nullptr, *mean_ = nullptr;
    std::vector<double> own_, target_;
    double y_mean_ = 0, square_ = 0, scale_ = 0, enough_ = 0, tol_ = 0, noise_ = 0, singular_ = 0, tie_ = 0, tied_ = 0;
    bool fit_intercept_ = true;
    std::vector<double> low_, high_;  // rho between which a coefficient is zero
    std::vector<double> rho_, beta_, slope_, speed_;
    std::vector<double> lo_, hi_;  // coefficients that rho allows
    std::vector<Size> members_;  // coordinates strictly between them, in the order of the factor
    Factor factor_;
    std::vector<double> step_, reduced_, product_, waits_;
};

}  // namespace

void bind_inverse_scale_space(nb::module_& m, const Kernels* chosen) {
    kernels = chosen;
    nb::class_<InverseScaleSpace>(m, "InverseScaleSpace", "Squared loss from event to event.")
        .def(nb::init<nb::dict, nb::dict, nb::dict>(), nb::kw_only(), nb::arg("penalty"), nb::arg("block"),
             nb::arg("settings"))
        .def("advance", &InverseScaleSpace::advance, nb::arg("arrays"), nb::arg("until"),
             nb::arg("limit"), nb::arg("max_steps"));
}

// Losses of a precision matrix Omega, whose entries off the diagonal are the columns and whose diagonal is alpha: the
// compiled twin of losses/gaussian_graph.py, which has the formulas. The data are its covariance matrix S, so there are
// no rows: what is of their size is one number a column, the sum of its two places, and then one a node.
#include <cmath>
#include <limits>
#include <utility>

#include "columns.hpp"
#include "elimination.hpp"
#include "rows.hpp"
#include "vectors.hpp"

namespace bregpath {

namespace {

// Share of the places of a matrix that is filled, beyond which it is multiplied as a full one.
constexpr double kFull = 0.15;

// The elimination of the matrices in which some columns are not zero, and where entries of all columns lie in its order.
struct Plan {
    Index columns;
    Elimination order;
    Elimination::Numbers places;  // of all columns, then of the diagonal
};

// What is kept of a point for the Hessian there.
struct Known {
    std::vector<double> matrix, alpha, quadratic;
    std::shared_ptr<const Plan> plan;
    bool is_set = false;
};

class PrecisionRows : public Rows {
   public:
    PrecisionRows(const Kernels* kernels, const Covariance& of, double alpha_rate)
        : Rows(kernels, of.p, of.p, alpha_rate), p_(of.p), m_(Size(of.above.size())),
          above_(of.above), R_(m_ + p_), r_(m_ + p_), next_r_(m_ + p_), S_(m_ + p_),
          full_S_(of.matrix, of.matrix + p_ * p_), work_(p_ * p_), product_(p_ * p_) {
        for (const Size place : above_) {
            one_end_.push_back(int32_t(place / p_)), other_end_.push_back(int32_t(place % p_));
            below_.push_back(place % p_ * p_ + place / p_);
        }
        for (Known* known : {&now_, &next_}) known->matrix.resize(p_ * p_);
        for (Size c = 0; c < m_; ++c) S_[c] = of.matrix[above_[c]];
        for (Size j = 0; j < p_; ++j) S_[m_ + j] = of.matrix[j * (p_ + 1)];
    }

    bool has_domain() const override { return true; }

    void load(const Point& at, const double* R, const double* residual) override {
        gather(R, R_), gather(residual, r_);
        columns_ = at.columns, beta_.assign(at.beta, at.beta + columns_.size());
        alpha_.assign(at.alpha, at.alpha + p_);
        now_.is_set = false;
    }

    void store(double* R, double* residual) override { scatter(R_, R), scatter(r_, residual); }

    void begin(const Point&, const double*, double h, const Chebyshev::Stages& stages) override {
        moving_.begin(m_ + p_, R_.data(), r_.data(), stages.first * h);
    }

    void stage(const Point& at, const Factors& factors, double* speed) override {
        evaluate(at, next_, speed, false);
        moving_.next(k_, factors, next_r_.data());
    }

    double arrive(const Point& end, double* speed) override { return evaluate(end, next_, speed, true); }

    void finish(const double* z_now, const double*, double* z, double* slope) override {
        const std::vector<double>& R = moving_.stage();
        for (Size c = 0; c < m_; ++c) z[c] = z_now[c] - (R[c] - R_[c]), slope[c] = -next_r_[c];
    }

    void commit() override { R_.swap(moving_.stage()), r_.swap(next_r_), std::swap(now_, next_); }

    void update_hessian() override {
        if (!now_.is_set) {
            std::vector<double> unused(m_ + p_);
            differentiate({columns_, beta_.data(), alpha_.data()}, now_, unused.data(), true);
            now_.is_set = true;
        }
        prepare_hessian();
    }

   protected:
    // The derivative by all columns and alpha, and the loss if it is wanted, else 0; kInfinity where there is none.
    virtual double differentiate(const Point& at, Known& to, double* r, bool want_value) = 0;
    virtual void prepare_hessian() {}

    // For the matrix of a point: the same one for all stages of a step.
    const std::shared_ptr<const Plan>& plan_of(const Point& at) {
        if (plan_ && plan_->columns == at.columns) return plan_;
        Elimination::Numbers ends, others;
        for (const Size c : at.columns) ends.push_back(one_end_[c]), others.push_back(other_end_[c]);
        Plan made{at.columns, Elimination(p_, ends, others), Elimination::Numbers(m_ + p_)};
        auto plan = std::make_shared<Plan>(std::move(made));
        for (Size c = 0; c < m_; ++c) plan->places[c] = int32_t(plan->order.place(one_end_[c], other_end_[c]));
        for (Size j = 0; j < p_; ++j) plan->places[m_ + j] = int32_t(plan->order.place(j, j));
        return plan_ = plan;
    }

    // The matrix of a point, whose diagonal is multiplied, in the order of a plan.
    void write(const Plan& plan, const Point& at, double diagonal, double* matrix) const {
        plan.order.clear(matrix);
        for (size_t c = 0; c < at.columns.size(); ++c) matrix[plan.places[at.columns[c]]] = at.beta[c];
        for (Size j = 0; j < p_; ++j) matrix[plan.places[m_ + j]] = diagonal * at.alpha[j];
    }

    // The logarithm of its determinant, -infinity where it is not positive definite.
    double log_determinant(const Point& at, double diagonal) {
        const Plan& plan = *plan_of(at);
        write(plan, at, diagonal, work_.data());
        return plan.order.log_determinant(k_, work_.data(), scratch_);
    }

    bool is_full(const Point& at) const { return double(2 * at.columns.size()) > kFull * double(p_ * p_); }

    // A symmetric matrix times that of a point, column after column: of a sparse one the neighbours of each node only.
    void multiply(const std::vector<double>& symmetric, const Point& at, double* out) {
        if (is_full(at)) {
            std::fill(work_.begin(), work_.end(), 0.0);
            for (size_t c = 0; c < at.columns.size(); ++c)
                work_[above_[at.columns[c]]] = work_[below_[at.columns[c]]] = at.beta[c];
            for (Size j = 0; j < p_; ++j) work_[j * (p_ + 1)] = at.alpha[j];
            return multiply(symmetric, work_, out);
        }
        ends_.assign(p_, 0);
        for (const Size c : at.columns) ++ends_[one_end_[c]], ++ends_[other_end_[c]];
        Size total = 0;
        for (Size& end : ends_) end += 1, total += std::exchange(end, total);  // with the node itself
        columns_of_.resize(total), factors_.resize(total);
        const auto put = [&](Size node, Size neighbour, double factor) {
            columns_of_[ends_[node]] = {symmetric.data() + neighbour * p_}, factors_[ends_[node]++] = factor;
        };
        for (Size j = 0; j < p_; ++j) put(j, j, at.alpha[j]);
        for (size_t c = 0; c < at.columns.size(); ++c) {
            const Size j = one_end_[at.columns[c]], k = other_end_[at.columns[c]];
            put(j, k, at.beta[c]), put(k, j, at.beta[c]);
        }
        const std::span<const Column> all(columns_of_);
        for (Size j = 0, first = 0; j < p_; first = ends_[j++])
            bregpath::multiply(k_, all.subspan(first, ends_[j] - first), p_, 1, &factors_[first], out + j * p_);
    }

    // A symmetric matrix times one of which the rows are given, column after column of the transposed product.
    void multiply(const std::vector<double>& symmetric, const std::vector<double>& rows, double* out) {
        columns_of_.clear(), rows_of_.clear();
        for (Size j = 0; j < p_; ++j) columns_of_.push_back({&symmetric[j * p_]}), rows_of_.push_back(&rows[j * p_]);
        dots_.of(k_, {p_, p_, columns_of_.data(), true}, rows_of_, out);
    }

    // The sums over a column of two matrices that are multiplied entry by entry, the first one that of a point.
    void column_sums(const Point& at, const double* product, std::vector<double>& out) const {
        out.resize(p_);
        for (Size j = 0; j < p_; ++j) out[j] = at.alpha[j] * product[j * (p_ + 1)];
        for (size_t c = 0; c < at.columns.size(); ++c) {
            const Size column = at.columns[c];
            out[one_end_[column]] += at.beta[c] * product[above_[column]];
            out[other_end_[column]] += at.beta[c] * product[below_[column]];
        }
    }

    const Size p_, m_;
    const Index above_;
    Index below_;
    Elimination::Numbers one_end_, other_end_;  // the nodes of each column
    Known now_, next_;
    std::vector<double> R_, r_, next_r_;  // of columns, then of alpha
    std::vector<double> S_, full_S_;      // the same of the covariance matrix; all of it
    std::vector<double> work_, product_, factors_;
    std::vector<Column> columns_of_;
    std::vector<const double*> rows_of_;
    ManyDots dots_;
    Elimination::Scratch scratch_;

   private:
    double evaluate(const Point& at, Known& to, double* speed, bool want_value) {
        pause(double(p_ * p_) * p_);
        const double value = differentiate(at, to, next_r_.data(), want_value);
        to.is_set = want_value && std::isfinite(value);
        const Size k = Size(at.columns.size());
        if (!std::isfinite(value)) {
            std::fill(speed, speed + k + p_, std::numeric_limits<double>::quiet_NaN());
            return kInfinity;
        }
        for (Size c = 0; c < k; ++c) speed[c] = -next_r_[at.columns[c]];
        for (Size j = 0; j < p_; ++j) speed[k + j] = -alpha_rate * next_r_[m_ + j];
        return value;
    }

    void gather(const double* matrix, std::vector<double>& to) const {
        for (Size c = 0; c < m_; ++c) to[c] = matrix[above_[c]] + matrix[below_[c]];
        for (Size j = 0; j < p_; ++j) to[m_ + j] = matrix[j * (p_ + 1)];
    }

    void scatter(const std::vector<double>& from, double* matrix) const {
        for (Size c = 0; c < m_; ++c) matrix[above_[c]] = matrix[below_[c]] = 0.5 * from[c];
        for (Size j = 0; j < p_; ++j) matrix[j * (p_ + 1)] = from[m_ + j];
    }

    Index columns_;  // of the point that was loaded, with its coefficients
    std::vector<double> beta_, alpha_;
    Recursion moving_;  // R through a step
    std::shared_ptr<const Plan> plan_;
    Index ends_;
};

class LikelihoodRows final : public PrecisionRows {
   public:
    using PrecisionRows::PrecisionRows;

    // W V W at the places of the columns of V, and on the diagonal.
    void hessian(const Point& v, double* out) override {
        pause(double(p_ * p_) * p_);
        multiply(inverse_, v, product_.data());
        transpose(product_.data(), p_, p_, work_.data());
        if (is_full(v)) multiply(inverse_, work_, product_.data());
        const auto entry = [&](Size j, Size k) {
            return is_full(v) ? product_[j * p_ + k] : dot(&work_[j * p_], &inverse_[k * p_], p_);
        };
        for (const Size c : v.columns) *out++ = 2 * entry(one_end_[c], other_end_[c]);
        for (Size j = 0; j < p_; ++j) *out++ = entry(j, j);
    }

    double value(const Point& at) override {
        return trace(at) - log_determinant(at, 1.0);
    }

   protected:
    double differentiate(const Point& at, Known& to, double* r, bool) override {
        double* inverse = to.matrix.data();
        to.plan = plan_of(at);
        write(*to.plan, at, 1.0, inverse);
        const double value = trace(at) - to.plan->order.invert(k_, inverse, scratch_);
        if (!std::isfinite(value)) return kInfinity;
        const int32_t* places = to.plan->places.data();
        for (Size c = 0; c < m_; ++c) r[c] = 2 * (S_[c] - inverse[places[c]]);
        for (Size j = m_; j < m_ + p_; ++j) r[j] = S_[j] - inverse[places[j]];
        return value;
    }

    void prepare_hessian() override {
        inverse_.resize(p_ * p_);
        const int32_t* places = now_.plan->places.data();
        for (Size c = 0; c < m_; ++c) inverse_[above_[c]] = inverse_[below_[c]] = now_.matrix[places[c]];
        for (Size j = 0; j < p_; ++j) inverse_[j * (p_ + 1)] = now_.matrix[places[m_ + j]];
    }

   private:
    // tr(S Omega)
    double trace(const Point& at) const {
        double sum = dot(&S_[m_], at.alpha, p_);
        for (size_t c = 0; c < at.columns.size(); ++c) sum += 2 * S_[at.columns[c]] * at.beta[c];
        return sum;
    }

    std::vector<double> inverse_;  // at `now`, in the order of the nodes
};

class CompositeRows final : public PrecisionRows {
   public:
    CompositeRows(const Kernels* kernels, const Covariance& of, double alpha_rate, double margin)
        : PrecisionRows(kernels, of, alpha_rate), margin_(margin) {}

    void hessian(const Point& v, double* out) override {
        pause(double(p_ * p_));
        const std::vector<double>&d = now_.alpha, &product = now_.matrix;
        multiply(full_S_, v, product_.data());
        column_sums(v, product.data(), sums_);
        const auto entry = [&](Size place, Size j) {
            return (product_[place] - v.alpha[j] / d[j] * product[place]) / d[j];
        };
        for (const Size c : v.columns) *out++ = entry(above_[c], one_end_[c]) + entry(below_[c], other_end_[c]);
        for (Size j = 0; j < p_; ++j) {
            const double of_diagonal = now_.quadratic[j] * v.alpha[j] / d[j] - sums_[j] + 0.5 * v.alpha[j];
            *out++ = entry(j * (p_ + 1), j) + of_diagonal / (d[j] * d[j]);
        }
    }

    double value(const Point& at) override {
        if (!is_inside(at)) return kInfinity;
        multiply(full_S_, at, product_.data());
        column_sums(at, product_.data(), sums_);
        return loss(at, sums_);
    }

   protected:
    double differentiate(const Point& at, Known& to, double* r, bool want_value) override {
        const double* d = at.alpha;
        if (!(want_value ? is_inside(at) : has_positive_diagonal(at))) return kInfinity;
        double* product = to.matrix.data();
        multiply(full_S_, at, product);
        column_sums(at, product, to.quadratic);
        to.alpha.assign(d, d + p_);
        for (Size c = 0; c < m_; ++c)
            r[c] = product[above_[c]] / d[one_end_[c]] + product[below_[c]] / d[other_end_[c]];
        for (Size j = 0; j < p_; ++j)
            r[m_ + j] = (product[j * (p_ + 1)] - to.quadratic[j] / (2 * d[j]) - 0.5) / d[j];
        return want_value ? loss(at, to.quadratic) : 0.0;
    }

   private:
    bool has_positive_diagonal(const Point& at) const {
        return std::all_of(at.alpha, at.alpha + p_, [](double d) { return d > 0; });
    }

    bool is_inside(const Point& at) { return std::isfinite(log_determinant(at, 1 - margin_)); }

    double loss(const Point& at, const std::vector<double>& quadratic) const {
        double value = 0;
        for (Size j = 0; j < p_; ++j) value += quadratic[j] / (2 * at.alpha[j]) - 0.5 * std::log(at.alpha[j]);
        return value;
    }

    const double margin_;
    std::vector<double> sums_;
};

}  // namespace

std::unique_ptr<Rows> likelihood_rows(const Kernels* kernels, const Covariance& of, double alpha_rate) {
    return std::make_unique<LikelihoodRows>(kernels, of, alpha_rate);
}

std::unique_ptr<Rows> composite_rows(const Kernels* kernels, const Covariance& of, double alpha_rate, double margin) {
    return std::make_unique<CompositeRows>(kernels, of, alpha_rate, margin);
}

}  // namespace bregpath

// Rows that are there as vectors over n: what regressions and graphs have in common.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "columns.hpp"
#include "rows.hpp"

namespace bregpath {

class DataRows : public Rows {
   public:
    // m working columns with `outputs` coefficients each.
    DataRows(const Kernels* kernels, Size n, Size n_alpha, double alpha_rate, Size m, Size outputs)
        : Rows(kernels, n, n_alpha, alpha_rate), m_(m), outputs_(outputs), everything_(others_of({}, m)) {
        for (auto* slot : {&now_, &next_}) slot->R.assign(n * n_alpha, 0.0);
        resize(n);
        products_.assign(2 * m * outputs, 0.0);
    }

    void load(const Point& at, const double* R, const double* residual) override {
        tell_apart(at.columns);
        transpose(R, n, n_alpha, now_.R.data());
        predict(at, now_.eta.data());
        if (works_on_all())
            transpose(residual, n, n_alpha, now_.residual.data());
        else
            loss(now_.eta.data(), now_.residual.data());
    }

    void store(double* R, double* residual) override {
        transpose(now_.R.data(), n_alpha, n, R);
        transpose(of_rows(now_.residual, residual_), n_alpha, n, residual);
    }

    void begin(const Point& now, const double*, double h, const Chebyshev::Stages& stages) override {
        tell_apart(now.columns);
        live_ = now.columns, h_ = h;
        shares_ = stages.shares, n_stages_ = 0;
        std::fill(change_.begin(), change_.end(), 0.0);
        integrate(now_.residual.data());
    }

    void stage(const Point& at, const Factors&, double* speed) override {
        evaluate(at, r_.data(), speed, false);
        integrate(r_.data());
    }

    double arrive(const Point& end, double* speed) override {
        return evaluate(end, next_.residual.data(), speed, true);
    }

    void finish(const double* z_now, const double*, double* z, double* slope) override {
        const double* change = of_rows(change_, r_);
        for (Size i = 0; i < n * n_alpha; ++i) next_.R[i] = now_.R[i] + change[i];
        // Where nearly all are at rest, all of them: to choose takes longer than the few products that are not asked for.
        const bool all = kMany * Size(live_.size()) < m_;
        const Index& others = all ? everything_ : (others_ = others_of(live_, m_));
        if (others.empty()) return;
        dots(others, {change, of_rows(next_.residual, residual_)}, products_.data());
        const Size k = Size(others.size());
        for (Size l = 0; l < outputs_; ++l)
            for (Size c = 0; c < k; ++c) {
                const Size i = l * m_ + others[c];
                z[i] = z_now[i] - products_[l * k + c];
                slope[i] = -products_[(outputs_ + l) * k + c];
            }
    }

    void commit() override { std::swap(now_, next_); }

    double value(const Point& at) override {
        tell_apart(at.columns);
        pause(double(size_) * (at.columns.size() + 1));
        aside_.resize(2 * size_);  // a step that is looked at inside is not done yet
        predict(at, aside_.data());
        return loss(aside_.data(), aside_.data() + size_);
    }

    double look(const Point& at, double* residual, double* speed) override {
        tell_apart(at.columns);
        const double value = evaluate(at, r_.data(), speed, true);
        transpose(of_rows(r_, residual_), n_alpha, n, residual);
        return value;
    }

    void update_hessian() override { set_curvature(now_.eta.data()); }

   protected:
    // eta = alpha + X beta + offset.
    virtual void predict(const Point& at, double* eta) = 0;
    // The loss, and r = d loss / d eta.
    virtual double loss(const double* eta, double* r) = 0;
    // eta, r and g = X' r; returns the loss when wanted.
    virtual double gradient(const Point& at, double* eta, double* r, double* g, bool want_value) = 0;
    // X' u for some vectors, one after the other.
    virtual void dots(const Index& columns, std::initializer_list<const double*> vectors, double* out) = 0;
    // Take the curvature at eta.
    virtual void set_curvature(const double* eta) = 0;

    // Whether the rows that are worked on are those of the data, in their order.
    virtual bool works_on_all() const { return true; }
    // Before columns move: rows that they tell apart may be one no longer. Whether what is worked on has changed.
    virtual bool tell_apart(const Index&) { return false; }
    // A vector over the rows that are worked on as one over those of the data: itself, or written into `room`.
    virtual const double* of_rows(const std::vector<double>& v, std::vector<double>& /* room */) { return v.data(); }

    // Work on other rows, each of which is one of those before.
    void work_on(const std::vector<int32_t>& origin) {
        const Size rows = Size(origin.size()), before = size_ / n_alpha;
        const std::vector<double> eta = std::exchange(now_.eta, {});
        resize(rows);
        for (Size l = 0; l < n_alpha; ++l)
            for (Size i = 0; i < rows; ++i) now_.eta[l * rows + i] = eta[l * before + origin[i]];
        loss(now_.eta.data(), now_.residual.data());
    }

    void multiply(const Columns& x, std::initializer_list<const double*> vectors, double* out) {
        vectors_.clear();
        for (const double* u : vectors)
            for (Size l = 0; l < n_alpha; ++l) vectors_.push_back(u + l * n);
        k_->dots(x, vectors_.data(), Size(vectors_.size()), out);
    }

    Size size_ = 0;  // numbers of a vector over the rows that are worked on
    std::vector<const double*> vectors_;

   private:
    double evaluate(const Point& at, double* residual, double* speed, bool want_value) {
        const Size moving = Size(at.columns.size()) * outputs_;
        pause(double(size_) * (at.columns.size() + 1));
        const double value = gradient(at, next_.eta.data(), residual, speed, want_value);
        for (Size i = 0; i < moving; ++i) speed[i] = -speed[i];
        alpha_speed(residual, speed + moving);
        return value;
    }

    // R between the stages is not asked for: what its end has of the residual at the next one.
    void integrate(const double* residual) { k_->add(size_, h_ * shares_[n_stages_++], residual, change_.data()); }

    void alpha_speed(const double* residual, double* out) const {
        k_->totals(size_ / n_alpha, n_alpha, residual, out);
        for (Size l = 0; l < n_alpha; ++l) out[l] *= -alpha_rate;
    }

    void resize(Size rows) {
        size_ = rows * n_alpha;
        for (auto* v : {&now_.residual, &now_.eta, &next_.residual, &next_.eta, &change_, &r_}) v->resize(size_);
    }

    struct Slot {
        std::vector<double> R;              // of all rows; the others of those that are worked on
        std::vector<double> residual, eta;
    };
    static constexpr Size kMany = 8;  // times as many columns as are live

    const Size m_, outputs_;
    Slot now_, next_;
    std::vector<double> aside_;         // predictor and residual of a point that is no step's
    std::vector<double> change_, r_;    // that of R in a step; the residual of a stage
    std::vector<double> residual_;      // of all rows
    std::vector<double> products_;      // X'dR and X'r of the other columns
    Index live_, others_;               // columns of the step
    const Index everything_;
    std::vector<double> shares_;        // of the residuals of its stages in R
    size_t n_stages_ = 0;
    double h_ = 0;
};

}  // namespace bregpath

// Squared loss with the Gram matrix of the columns: a gradient costs no pass over the rows. The integrals of the
// coefficients stand for R, and the rows themselves, which may be absent, are needed at the border only.
#include <algorithm>

#include "columns.hpp"
#include "compact_gram.hpp"
#include "rows.hpp"

namespace bregpath {

namespace {

class GramRows final : public Rows {
   public:
    GramRows(const Kernels* kernels, const Data& data, const Columns& x, const Moments& moments, double alpha_rate)
        : Rows(kernels, x.n, 1, alpha_rate), data_(data), x_(x), moments_(moments), m_(x.k), compact_(x.k),
          y_(data.y, data.y + x.n), integral_(m_ + 1), zero_(m_ + 1), speed_(m_ + 1), pair_(2 * m_), over_all_(2 * m_),
          over_others_(2 * m_) {
        for (Size i = 0; data.offset && i < n; ++i) y_[i] -= data.offset[i];
    }

    void load(const Point& at, const double* R, const double* residual) override {
        stored_.clear();  // of a block that ended in an exception, whose arrays are gone
        R_.assign(R, R + n), residual_.assign(residual, residual + n);
        std::fill(integral_.begin(), integral_.end(), 0.0), past_ = 0;
        columns_ = at.columns, keep(at, now_);
    }

    void store(double* R, double* residual) override {
        if (!x_.at) {
            std::copy(R_.begin(), R_.end(), R), std::copy(residual_.begin(), residual_.end(), residual);
            return;
        }
        std::vector<double> beta(m_ + 1, 0.0);
        for (size_t c = 0; c < columns_.size(); ++c) beta[columns_[c]] = now_[c];
        beta[m_] = now_.back();
        stored_.push_back({R, residual, past_, std::move(beta), integral_});
    }

    void flush() override {
        if (stored_.empty()) return;
        if (x_.is_dense)
            write_together();
        else
            for (const Stored& s : stored_) write_sparse(s);
        stored_.clear();
    }

    void begin(const Point& now, const double*, double h, const Chebyshev::Stages& stages) override {
        live_ = now.columns, h_ = h;
        choose(live_);
        keep(now, start_);
        step_integral_.begin(Size(start_.size()), zero_.data(), start_.data(), stages.first * h);
    }

    void stage(const Point& at, const Factors& factors, double* speed) override {
        evaluate(at, speed), keep(at, next_);
        step_integral_.next(k_, factors, next_.data());
    }

    double arrive(const Point& end, double* speed) override {
        keep(end, next_);
        return evaluate(end, speed);
    }

    void finish(const double* z_now, const double*, double* z, double* slope) override {
        const size_t k = live_.size();
        const std::vector<double>& integral = step_integral_.stage();
        multiply_others(integral);
        const double u = mean_of({live_, next_.data(), &next_[k]}) - moments_.y_mean;
        const double u_integral = mean_of({live_, integral.data(), &integral[k]}) - h_ * moments_.y_mean;
        for (Size j = 0; j < m_; ++j) {
            slope[j] = moments_.target[j] - u * moments_.mean[j] - over_all_[j];
            z[j] = z_now[j] + h_ * moments_.target[j] - u_integral * moments_.mean[j] - over_all_[m_ + j];
        }
    }

    void commit() override {
        const std::vector<double>& integral = step_integral_.stage();
        for (size_t c = 0; c < live_.size(); ++c) integral_[live_[c]] += integral[c];
        integral_[m_] += integral[live_.size()];
        past_ += h_;
        columns_.swap(live_), now_.swap(next_);
    }

    double value(const Point& at) override {
        choose(at.columns);
        return evaluate(at, speed_.data());
    }

    void update_hessian() override {}

    void hessian(const Point& v, double* out) override {
        const size_t k = v.columns.size();
        pause(double(k) * k);
        choose(v.columns);
        product(v.beta, out);
        out[k] = mean_of(v);
        for (size_t c = 0; c < k; ++c) out[c] += out[k] * moments_.mean[v.columns[c]];
    }

   private:
    // A knot whose rows are still to be written: coefficients, and their integrals since R was loaded, with alpha.
    struct Stored {
        double *R, *residual;
        double past;
        std::vector<double> beta, integral;
    };

    // alpha + X beta, now and its integral, of all stored knots at once: rows of X stay in the cache from one to the next.
    void write_together() {
        Index columns;
        for (Size j = 0; j < m_; ++j) {
            const auto takes_part = [j](const Stored& s) { return s.integral[j] != 0 || s.beta[j] != 0; };
            if (std::any_of(stored_.begin(), stored_.end(), takes_part)) columns.push_back(j);
        }
        const size_t outputs = 2 * stored_.size();
        std::vector<double> coefficients, alpha, eta(outputs * n);
        for (const Stored& s : stored_)
            for (const std::vector<double>* of : {&s.beta, &s.integral}) {
                for (const Size j : columns) coefficients.push_back((*of)[j]);
                alpha.push_back((*of)[m_]);
            }
        Data plain{};
        plain.q = Size(outputs);
        k_->predict(choice_.of(x_, columns), plain, alpha.data(), coefficients.data(), eta.data());
        const double* now = eta.data();
        for (const Stored& s : stored_) {
            const double* integral = now + n;
            for (Size i = 0; i < n; ++i) {
                s.residual[i] = data_.w[i] * (now[i] - y_[i]);
                s.R[i] = R_[i] + data_.w[i] * (integral[i] - y_[i] * s.past);
            }
            now = integral + n;
        }
    }

    // The same of one knot: a pass over the rows, and few entries.
    void write_sparse(const Stored& s) {
        double now = s.beta[m_], integral = s.integral[m_];
        for (Size j = 0; j < m_; ++j) {
            const double shift = x_.at[j].center / x_.at[j].scale;
            now -= s.beta[j] * shift, integral -= s.integral[j] * shift;
        }
        for (Size i = 0; i < n; ++i) {
            s.residual[i] = data_.w[i] * (now - y_[i]);
            s.R[i] = R_[i] + data_.w[i] * (integral - y_[i] * s.past);
        }
        for (Size j = 0; j < m_; ++j) {
            const Column& x = x_.at[j];
            const double b = s.beta[j] / x.scale, past = s.integral[j] / x.scale;
            if (b == 0 && past == 0) continue;
            for (Size e = 0; e < x.count; ++e) {
                const Size i = x.rows[e];
                const double entry = data_.w[i] * x.values[x.is_indicator ? 0 : e];
                s.residual[i] += b * entry, s.R[i] += past * entry;
            }
        }
    }

    // The loss and minus its derivatives: G b - c + u m for the columns and u for alpha, with u the mean residual.
    double evaluate(const Point& at, double* speed) {
        const size_t k = at.columns.size();
        pause(double(k) * k);
        product(at.beta, speed);
        double u = at.alpha[0] - moments_.y_mean, spread = moments_.y_square;
        for (size_t c = 0; c < k; ++c) {
            spread += at.beta[c] * (speed[c] - 2 * chosen_target_[c]);
            u += at.beta[c] * chosen_mean_[c];
        }
        for (size_t c = 0; c < k; ++c) speed[c] = chosen_target_[c] - speed[c] - u * chosen_mean_[c];
        speed[k] = -alpha_rate * u;
        return 0.5 * (spread + u * u);
    }

    // The columns of which evaluate() and product() are told the coefficients: those of a step, for all of its stages.
    void choose(const Index& columns) {
        compact_.choose_from(moments_.matrix, moments_.stride, columns);
        chosen_.clear(), chosen_mean_.clear(), chosen_target_.clear();
        for (const Size j : columns) {
            chosen_.push_back(compact_.position(j));
            chosen_mean_.push_back(moments_.mean[j]), chosen_target_.push_back(moments_.target[j]);
        }
    }

    // G beta on the columns themselves.
    void product(const double* beta, double* out) {
        const std::vector<double>& product = compact_.product(k_, beta);
        for (size_t c = 0; c < chosen_.size(); ++c) out[c] = product[chosen_[c]];
    }

    // G times the coefficients at the end of a step, and times their integrals, of the columns that were not live: by the columns
    // of those that were, or by their own where these are fewer.
    void multiply_others(const std::vector<double>& integral) {
        const Size k = Size(live_.size());
        const bool are_few = 2 * k > m_;
        Flags is_live(m_, 0);
        for (const Size j : live_) is_live[j] = 1;
        gram_columns_.clear();
        for (Size j = 0; j < m_; ++j)
            if (is_live[j] != are_few) gram_columns_.push_back({moments_.matrix + j * moments_.stride});
        if (!are_few) {
            std::copy_n(next_.begin(), k, pair_.begin()), std::copy_n(integral.begin(), k, pair_.begin() + k);
            return multiply(k_, gram_columns_, m_, 2, pair_.data(), over_all_.data());
        }
        std::fill(pair_.begin(), pair_.end(), 0.0);
        for (Size c = 0; c < k; ++c) pair_[live_[c]] = next_[c], pair_[m_ + live_[c]] = integral[c];
        const double* both[2] = {pair_.data(), pair_.data() + m_};
        k_->dots({m_, m_ - k, gram_columns_.data(), true}, both, 2, over_others_.data());
        for (Size j = 0, c = 0; j < m_; ++j)
            if (!is_live[j]) over_all_[j] = over_others_[c], over_all_[m_ + j] = over_others_[m_ - k + c++];
    }

    // Mean of alpha + X beta.
    double mean_of(const Point& at) const {
        double mean = at.alpha[0];
        for (size_t c = 0; c < at.columns.size(); ++c) mean += at.beta[c] * moments_.mean[at.columns[c]];
        return mean;
    }

    static void keep(const Point& at, std::vector<double>& coefficients) {
        coefficients.assign(at.beta, at.beta + at.columns.size()), coefficients.push_back(at.alpha[0]);
    }

    Data data_;
    Columns x_;
    Moments moments_;
    Size m_;
    std::vector<Stored> stored_;
    CompactGram compact_;
    ColumnChoice choice_;
    std::vector<double> R_, residual_, y_;      // as they were loaded; y without the offset
    double past_ = 0, h_ = 0;                   // since then; length of the step
    Index columns_, live_;                      // of `now`; of the step
    std::vector<double> now_, start_, next_;    // coefficients of those, then alpha
    std::vector<double> integral_;              // of all coefficients and alpha since R was loaded
    Recursion step_integral_;                   // of those of the step
    Index chosen_;                              // positions in the compact matrix
    std::vector<double> chosen_mean_, chosen_target_;
    std::vector<double> zero_, speed_, pair_, over_all_, over_others_;
    std::vector<Column> gram_columns_;
};

}  // namespace

std::unique_ptr<Rows> gram_rows(const Kernels* kernels, const Data& data, const Columns& x, const Moments& moments,
                                double alpha_rate) {
    return std::make_unique<GramRows>(kernels, data, x, moments, alpha_rate);
}

}  // namespace bregpath

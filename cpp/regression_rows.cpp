// Columns of a matrix, with the same columns for every output.
#include <optional>
#include <utility>

#include "data_rows.hpp"
#include "panels.hpp"
#include "patterns.hpp"
#include "row_kinds.hpp"

namespace bregpath {

namespace {

constexpr Size kMaxPanelled = 16384;  // rows: longer columns are read as fast as memory allows, and a copy is large

class RegressionRows final : public DataRows {
   public:
    RegressionRows(const Kernels* kernels, const Data& data, const Columns& x, double alpha_rate, UserLoss user)
        : DataRows(kernels, x.n, data.q, alpha_rate, x.k, data.q), data_(data), plain_(data), x_(x), live_x_(x), other_x_(x),
          user_(std::move(user)), h_(size_), u_(size_) {
        plain_.offset = nullptr;
        if (user_.evaluate) return;
        may_have_kinds_ = !x.is_dense && !data.offset && kRowsPerColumn * x.k <= x.n;
        if (x.is_dense && x.n <= kMaxPanelled) panels_.emplace(x), lanes_.resize(x.k * data.q * kPanelLanes);
    }

    Size n_grouped() const override { return live_x_.n_grouped(); }
    Size n_at_work() const override { return size_ / data_.q; }

    void hessian(const Point& v, double* out) override {
        if (tell_apart(v.columns)) update_hessian();
        pause(double(size_) * (v.columns.size() + 1));
        double* of_alpha = out + v.columns.size() * data_.q;
        if (panels_)
            return k_->panel_hessian(panels_->of(v.columns), data_, h_.data(), v.alpha, v.beta, u_.data(), out, of_alpha,
                                     lanes_.data());
        if (!user_.curvature)
            return k_->hessian(live_x_.of(v.columns), data(), h_.data(), v.alpha, v.beta, u_.data(), out, of_alpha);
        k_->predict(live_x_.of(v.columns), plain_, v.alpha, v.beta, u_.data());
        user_.curvature(eta_, u_.data());
        multiply(live_x_.of(v.columns), {u_.data()}, out);
        k_->totals(n, n_alpha, u_.data(), of_alpha);
    }

   protected:
    void predict(const Point& at, double* eta) override {
        k_->predict(live_x_.of(at.columns), data(), at.alpha, at.beta, eta);
    }

    double loss(const double* eta, double* r) override {
        return user_.evaluate ? user_.evaluate(eta, r) : k_->loss(data(), size_ / data_.q, eta, r);
    }

    double gradient(const Point& at, double* eta, double* r, double* g, bool want_value) override {
        if (panels_)
            return k_->panel_gradient(panels_->of(at.columns), data_, at.alpha, at.beta, eta, r, g, lanes_.data(),
                                      want_value);
        if (kinds_) kinds_->count_gradient();
        if (!user_.evaluate)
            return k_->gradient(live_x_.of(at.columns), data(), at.alpha, at.beta, eta, r, g, want_value);
        predict(at, eta);
        const double value = loss(eta, r);
        multiply(live_x_.of(at.columns), {r}, g);
        return value;
    }

    void dots(const Index& columns, std::initializer_list<const double*> vectors, double* out) override {
        multiply(x_.is_dense && Size(columns.size()) == x_.k ? x_ : other_x_.of(columns), vectors, out);
    }

    void set_curvature(const double* eta) override {
        eta_ = eta, h_.resize(size_), u_.resize(size_);
        if (!user_.curvature) k_->curvature(data(), size_ / data_.q, eta, h_.data());
    }

    bool works_on_all() const override { return !kinds_; }

    bool tell_apart(const Index& columns) override {
        if (!kinds_) return may_have_kinds_ && start_kinds(columns);
        if (!kinds_->tell_apart(columns)) return false;
        if (kinds_->is_over()) return end_kinds(), true;
        live_x_.work_on(kinds_->columns(), kinds_->origin());
        work_on(kinds_->origin());
        return true;
    }

    const double* of_rows(const std::vector<double>& v, std::vector<double>& room) override {
        if (!kinds_) return v.data();
        room.resize(n * n_alpha);
        kinds_->share(v.data(), room.data());
        return room.data();
    }

   private:
    const Data& data() const { return kinds_ ? kinds_->data() : data_; }

    // Once a pass over the columns takes as long as one over the rows. More columns would tell all rows apart.
    bool start_kinds(const Index& columns) {
        Size places = 0;
        for (const Size j : columns) places += x_.at[j].count;
        if (places < n) return false;
        kinds_.emplace(data_, x_);
        if (!kinds_->is_over()) kinds_->tell_apart(columns);
        may_have_kinds_ = !kinds_->is_over();
        if (!may_have_kinds_) return kinds_.reset(), false;
        live_x_ = PatternedColumns(kinds_->columns());
        work_on(kinds_->examples());
        return true;
    }

    void end_kinds() {
        std::vector<int32_t> origin = kinds_->of_row();
        for (int32_t& kind : origin) kind = kinds_->origin()[kind];
        may_have_kinds_ = false, kinds_.reset();
        live_x_ = PatternedColumns(x_);
        work_on(origin);
    }

    static constexpr Size kRowsPerColumn = 8;

    Data data_, plain_;  // plain: without an offset
    Columns x_;
    bool may_have_kinds_ = false;
    std::optional<RowKinds> kinds_;
    PatternedColumns live_x_, other_x_;  // columns that move, and those of which only derivatives are asked for
    UserLoss user_;
    std::optional<PanelCopy> panels_;
    std::vector<double> lanes_;  // of their products
    const double* eta_ = nullptr;  // where the curvature of a user's loss is taken
    std::vector<double> h_, u_;
};

}  // namespace

std::unique_ptr<Rows> regression_rows(const Kernels* kernels, const Data& data, const Columns& x, double alpha_rate,
                                      UserLoss user) {
    return std::make_unique<RegressionRows>(kernels, data, x, alpha_rate, std::move(user));
}

}  // namespace bregpath

// A graph of spins with linear stages. Predictors lie in panels of eight nodes, (panels, n, 8), and six spins are
// looked up at once: see spin_kernels.hpp. A step passes over the rows once; its stages are products with small
// matrices.
#include <algorithm>
#include <array>
#include <utility>

#include "aligned.hpp"
#include "node_grams.hpp"

namespace bregpath {

namespace {

constexpr Size kRowsTogether = 1536;  // of a panel: they stay in the cache from their predictors to their sums
constexpr Size kPanelsTogether = 16;  // share a logarithm in the loss
constexpr Size kTable = kSpinPatterns * kSpinLanes, kBlock = (kSpinGroup + 1) * kSpinLanes;

class SpinRows final : public Rows {
   public:
    SpinRows(const Kernels* kernels, std::vector<Node> nodes, const Columns& features, Places places, double alpha_rate)
        : Rows(kernels, features.n, Size(nodes.size()), alpha_rate), m_(Size(places.source.size()) / places.places),
          groups_((features.k + kSpinGroup - 1) / kSpinGroup), panels_((n_alpha + kSpinLanes - 1) / kSpinLanes),
          places_(std::move(places)), data_(nodes[0].data), grams_(kernels, features, places_, n_alpha) {
        for (auto* v : {&now_.R, &now_.residual, &next_.R, &next_.residual, &y_, &h_, &frozen_}) v->assign(size(), 0.0);
        patterns_.assign(groups_ * n, 0);
        for (Size j = 0; j < features.k; ++j)
            for (Size i = 0; i < n; ++i)
                patterns_[j / kSpinGroup * n + i] |= std::uint8_t(features.at[j].values[i] > 0) << j % kSpinGroup;
        by_runs([&](Size i, Size rows) {
            for (Size g = 0; g < groups_; ++g) sorted_.push_back(sort(patterns_.data() + g * n, i, rows));
        });
        for (const Node& node : nodes)
            for (Size i = 0; i < n; ++i) y_[place(i, node.first)] = node.data.y[i];
        // Nodes that pad the last panel have no weight.
        w_.assign(n * kSpinLanes, 0.0), last_w_.assign(n * kSpinLanes, 0.0);
        for (Size e = 0; e < n * kSpinLanes; ++e) {
            w_[e] = data_.w[e / kSpinLanes];
            if (e % kSpinLanes <= (n_alpha - 1) % kSpinLanes) last_w_[e] = w_[e];
        }
        for (size_t i = 0; i < places_.source.size(); ++i) {
            const Size s = places_.source[i], t = places_.target[i], block = t / kSpinLanes * groups_ + s / kSpinGroup;
            where_.push_back(block * kBlock + s % kSpinGroup * kSpinLanes + t % kSpinLanes);
        }
        zero_.assign(m_ + n_alpha, 0.0), u_.assign((n + 1) * kSpinLanes, 0.0), factors_.assign(n * kSpinLanes, 1.0);
    }

    // --- the border
    void load(const Point& at, const double* R, const double* residual) override {
        now_.at = spot(at);
        to_panels(R, now_.R.data()), to_panels(residual, now_.residual.data());
    }

    void store(double* R, double* residual) override {
        from_panels(now_.R.data(), R), from_panels(now_.residual.data(), residual);
    }

    // --- a step
    void begin(const Point& now, const double* speed, double h, const Chebyshev::Stages&) override {
        live_ = now.columns, step_ = h;
        const size_t moving = live_.size(), all = moving + n_alpha;
        start_.assign(now.beta, now.beta + moving), start_.insert(start_.end(), now.alpha, now.alpha + n_alpha);
        speed_.assign(speed, speed + all), changed_.resize(all);
        moving_.begin(Size(all), zero_.data(), zero_.data(), 0.0);
    }

    void stage(const Point& at, const Factors& factors, double* speed) override {
        const size_t moving = live_.size(), all = moving + n_alpha;
        for (size_t i = 0; i < all; ++i) changed_[i] = (i < moving ? at.beta[i] : at.alpha[i - moving]) - start_[i];
        hessian({live_, changed_.data(), &changed_[moving]}, speed);
        for (size_t i = 0; i < all; ++i) speed[i] = speed_[i] - (i < moving ? 1.0 : alpha_rate) * speed[i];
        moving_.next(k_, factors, changed_.data());
    }

    // Exact but for R, which follows from the integrals of the changes.
    double arrive(const Point& end, double* speed) override {
        const double* integrals = moving_.stage().data();
        next_.at = spot(end), change_ = spot({live_, integrals, integrals + live_.size()});
        double value = 0;
        for (auto* sums : {&moved_, &slopes_}) sums->assign(panels_ * groups_ * kBlock, 0.0);
        each_panel([&](Size b) { value += arrive(b); });
        value += end_loss();
        for (size_t c = 0; c < live_.size(); ++c) speed[c] = -read(slopes_, live_[c]);
        for (Size l = 0; l < n_alpha; ++l) speed[live_.size() + l] = -alpha_rate * slopes_[total(l)];
        return value;
    }

    void finish(const double* z_now, const double*, double* z, double* slope) override {
        for (Size j = 0; j < m_; ++j) z[j] = z_now[j] - read(moved_, j), slope[j] = -read(slopes_, j);
    }

    void commit() override { std::swap(now_, next_); }

    // --- the loss and its Hessian
    double value(const Point& at) override {
        const Spot here = spot(at);
        double value = 0;
        each_panel([&](Size b) {
            look_up(here, b, tables_);
            by_runs([&](Size i, Size rows) {
                predict(here, tables_, b, i, rows, u_.data());
                value += loss(b, i, rows, u_.data(), false);
            });
        });
        return value + end_loss();
    }

    void update_hessian() override {}  // a frozen one is always in use

    void hessian(const Point& v, double* out) override {
        pause(double(n * n_alpha));
        grams_.product(v, out);
    }

    bool has_linear_stages() const override { return true; }

    void freeze() override {
        for (Size b = 0; b < panels_; ++b) {
            look_up(now_.at, b, tables_);
            by_runs([&](Size i, Size rows) { predict(now_.at, tables_, b, i, rows, &frozen_[first(b, i)]); });
        }
        set_curvature();
    }

    void load_frozen(const double* eta) override {
        Aligned given(size(), 0.0);
        to_panels(eta, given.data());
        if (given == frozen_) return;  // what was made of it is still valid
        frozen_.swap(given);
        set_curvature();
    }

    void store_frozen(double* eta) const override { from_panels(frozen_.data(), eta); }

   private:
    // Coefficients as blocks (panels, groups, 7, 8), as the sums have them with one of a constant at last, and which of
    // these are not empty.
    struct Spot {
        Aligned blocks, alpha;
        Flags is_used;
    };
    struct Tables {
        Aligned numbers;
        std::vector<const std::uint8_t*> patterns;  // of the groups that have a table
    };
    // See RowsByPattern; of one group in a run of rows.
    struct Sorted {
        std::vector<int32_t> rows;
        std::vector<std::uint8_t> patterns, absentees;
        std::vector<double> goes_on;

        RowsByPattern view() const {
            return {Size(patterns.size()), rows.data(), patterns.data(), goes_on.data(), Size(absentees.size()),
                    absentees.data()};
        }
    };
    struct Slot {
        Aligned R, residual;
        Spot at;
    };

    // A panel ends with a row of zeros.
    Size size() const { return panels_ * (n + 1) * kSpinLanes; }
    Size first(Size b, Size i) const { return (b * (n + 1) + i) * kSpinLanes; }
    Size total(Size l) const { return l / kSpinLanes * groups_ * kBlock + kSpinGroup * kSpinLanes + l % kSpinLanes; }
    Size place(Size i, Size l) const { return first(l / kSpinLanes, i) + l % kSpinLanes; }

    void to_panels(const double* from, double* to) const {
        for (Size i = 0; i < n; ++i)
            for (Size l = 0; l < n_alpha; ++l) to[place(i, l)] = *from++;
    }

    void from_panels(const double* from, double* to) const {
        for (Size i = 0; i < n; ++i)
            for (Size l = 0; l < n_alpha; ++l) *to++ = from[place(i, l)];
    }

    Spot spot(const Point& at) const {
        Spot here{Aligned(panels_ * groups_ * kBlock, 0.0), Aligned(panels_ * kSpinLanes, 0.0),
                  Flags(panels_ * groups_, 0)};
        std::copy_n(at.alpha, n_alpha, here.alpha.data());
        for (size_t c = 0; c < at.columns.size(); ++c)
            for (Size i = at.columns[c] * places_.places; i < (at.columns[c] + 1) * places_.places; ++i)
                here.blocks[where_[i]] = at.beta[c], here.is_used[where_[i] / kBlock] = 1;
        return here;
    }

    double read(const Aligned& sums, Size j) const {
        double sum = 0;
        for (Size i = j * places_.places; i < (j + 1) * places_.places; ++i) sum += sums[where_[i]];
        return sum;
    }

    // --- a panel

    template <class Work>
    void each_panel(Work work) {
        std::fill(factors_.begin(), factors_.end(), 1.0);
        for (Size b = 0; b < panels_; ++b) {
            pause(double(n * kSpinLanes) * double(groups_));
            work(b);
        }
    }

    template <class Work>
    void by_runs(Work work) const {
        const Size runs = (n + kRowsTogether - 1) / kRowsTogether, rows = (n + runs - 1) / runs;
        for (Size i = 0; i < n; i += rows) work(i, std::min(rows, n - i));
    }

    Data data(Size b, Size i) const {
        Data data = data_;
        data.y = y_.data() + first(b, i);
        data.w = (b + 1 < panels_ ? w_ : last_w_).data() + i * kSpinLanes;
        return data;
    }

    // The loss of some rows, of which end_loss() adds a part; eta becomes the residual, if wanted.
    double loss(Size b, Size i, Size rows, double* eta, bool want_residual) {
        const Data run = data(b, i);
        const Size numbers = rows * kSpinLanes;
        if (run.loss != Loss::logistic) return k_->loss(run, numbers, eta, eta);
        const double value = k_->logistic_spins(numbers, run.y, run.w, eta, &factors_[i * kSpinLanes], want_residual);
        if ((b + 1) % kPanelsTogether) return value;
        const double logarithms = k_->log_factors(numbers, &w_[i * kSpinLanes], &factors_[i * kSpinLanes]);
        std::fill_n(&factors_[i * kSpinLanes], numbers, 1.0);
        return value + logarithms;
    }

    double end_loss() const {
        return data_.loss == Loss::logistic ? k_->log_factors(n * kSpinLanes, w_.data(), factors_.data()) : 0.0;
    }

    void look_up(const Spot& at, Size b, Tables& tables) const {
        tables.numbers.resize(groups_ * kTable), tables.patterns.clear();
        for (Size g = 0; g < groups_; ++g) {
            if (!at.is_used[b * groups_ + g]) continue;
            double* table = tables.numbers.data() + Size(tables.patterns.size()) * kTable;
            k_->make_spin_table(&at.blocks[(b * groups_ + g) * kBlock], table);
            tables.patterns.push_back(patterns_.data() + g * n);
        }
    }

    void predict(const Spot& at, const Tables& tables, Size b, Size i, Size rows, double* eta) {
        const SpinPatterns patterns = run(tables.patterns, i, rows);
        k_->predict_spins(patterns, tables.numbers.data(), &at.alpha[b * kSpinLanes], eta);
    }

    SpinPatterns run(const std::vector<const std::uint8_t*>& patterns, Size i, Size rows) {
        run_ = patterns;
        for (auto& pattern : run_) pattern += i;
        return {rows, Size(run_.size()), run_.data()};
    }

    // Residuals, R and the sums of a panel at the end of a step; returns its loss.
    double arrive(Size b) {
        double value = 0;
        const Sorted* sorted = sorted_.data();
        look_up(next_.at, b, tables_), look_up(change_, b, change_tables_);
        by_runs([&](Size i, Size rows) {
            const Size at = first(b, i), numbers = rows * kSpinLanes;
            double *r = &next_.residual[at], *u = &u_[i * kSpinLanes];
            predict(next_.at, tables_, b, i, rows, r);
            value += loss(b, i, rows, r, true);
            predict(change_, change_tables_, b, i, rows, u);
            k_->integrate_rows(numbers, &h_[at], &now_.residual[at], step_, u, &now_.R[at], &next_.R[at]);
            for (Size g = b * groups_; g < (b + 1) * groups_; ++g, ++sorted) {
                const double* residual = &next_.residual[first(b, 0)];
                k_->add_spins(sorted->view(), u_.data(), residual, &moved_[g * kBlock], &slopes_[g * kBlock]);
            }
        });
        return value;
    }

    Sorted sort(const std::uint8_t* patterns, Size i, Size rows) const {
        std::array<std::vector<int32_t>, kSpinPatterns> of;
        for (Size e = i; e < i + rows; ++e) of[patterns[e]].push_back(int32_t(e));
        Sorted sorted;
        for (Size k = 0; k < kSpinPatterns; ++k) {
            if (of[k].empty()) sorted.absentees.push_back(std::uint8_t(k));
            while (of[k].size() % 4) of[k].push_back(int32_t(n));
            sorted.rows.insert(sorted.rows.end(), of[k].begin(), of[k].end());
            for (size_t e = 0; e < of[k].size(); e += 4)
                sorted.patterns.push_back(std::uint8_t(k)), sorted.goes_on.push_back(e > 0);
        }
        return sorted;
    }

    void set_curvature() {
        for (Size b = 0; b < panels_; ++b)
            k_->curvature(data(b, 0), n * kSpinLanes, &frozen_[first(b, 0)], &h_[first(b, 0)]);
        Aligned& of_nodes = grams_.forget();
        for (Size l = 0; l < n_alpha; ++l)
            for (Size i = 0; i < n; ++i) of_nodes[l * grams_.stride() + i] = h_[place(i, l)];
    }

    const Size m_, groups_, panels_;
    const Places places_;
    const Data data_;  // loss and weights, which all nodes share
    NodeGrams grams_;
    std::vector<std::uint8_t> patterns_;  // (groups, n)
    Aligned factors_;                     // of each row and lane: see loss()
    Aligned y_, w_, last_w_;              // in panels; weights of all panels but the last, and of it
    Index where_;                         // of each place of a coefficient in blocks
    Slot now_, next_;
    Spot change_;  // integrals of the changes of a step
    Tables tables_, change_tables_;
    Aligned moved_, slopes_;      // X'dR and X'r, in blocks
    std::vector<Sorted> sorted_;  // run after run, group after group
    std::vector<const std::uint8_t*> run_;
    Index live_;
    Recursion moving_;  // the integrals of the changes of (beta, alpha) since the start
    double step_ = 0;
    std::vector<double> start_, speed_, changed_, zero_;
    Aligned frozen_, h_, u_;
};

}  // namespace

std::unique_ptr<Rows> spin_rows(const Kernels* kernels, std::vector<Node> nodes, const Columns& features, Places places,
                                double alpha_rate) {
    return std::make_unique<SpinRows>(kernels, std::move(nodes), features, std::move(places), alpha_rate);
}

}  // namespace bregpath

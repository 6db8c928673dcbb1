// A graph of nodes with states, one regression a node on the states of all others, in which all columns work.
//
// Predictors of all states are far larger than the coefficients. So they are made for some rows of one node, used while
// they are in the cache, and forgotten; R is not kept. Of a step one integral is: that of the residuals of its stages,
// from which the columns that were at rest learn where they are.
#include <algorithm>
#include <numeric>
#include <utility>

#include "rows.hpp"

namespace bregpath {

namespace {

constexpr Size kRowsTogether = 256;  // their tile stays in the cache with the tables of a node

class StateRows final : public Rows {
   public:
    StateRows(const Kernels* kernels, Size n, std::vector<Node> nodes, Places places, double alpha_rate)
        : Rows(kernels, n, nodes.back().first + nodes.back().data.q, alpha_rate), nodes_(std::move(nodes)),
          p_(Size(nodes_.size())), places_(places.places), states_(p_ * n) {
        std::vector<int32_t> node_of;
        Size widest = 0, numbers = 0;
        for (Size d = 0; d < p_; ++d) {
            const Data& data = nodes_[d].data;
            node_of.insert(node_of.end(), data.q, int32_t(d));
            for (Size i = 0; i < n; ++i) states_[d * n + i] = int32_t(data.y[i]);
            widths_.push_back((data.q + kStateLanes - 1) / kStateLanes * kStateLanes);
            starts_.push_back(numbers);
            numbers += n_alpha * widths_.back();
            widest = std::max(widest, widths_.back());
        }
        sums_.assign(numbers, 0.0);
        for (auto* tile : {&tile_, &share_}) tile->assign(kRowsTogether * widest, 0.0);
        alpha_.assign(widest, 0.0);
        for (size_t i = 0; i < places.source.size(); ++i) {
            const Size to = node_of[places.target[i]], from = node_of[places.source[i]];
            where_.push_back(starts_[to] + places.source[i] * widths_[to] + places.target[i] - nodes_[to].first);
            pair_.push_back(int32_t(to * p_ + from));
        }
        all_ = join(others_of({}, Size(where_.size()) / places_));
    }

    // --- the border: neither R nor residuals pass it
    Size n_kept() const override { return 0; }
    void load(const Point& at, const double*, const double*) override { now_ = spot(at); }
    void store(double*, double*) override {}

    // --- a step
    void begin(const Point& now, const double*, double h, const Chebyshev::Stages& stages) override {
        live_ = now.columns, at_stage_ = 0;
        weigh(stages, h);
        others_ = others_of(live_, Size(where_.size()) / places_);
        at_rest_ = join(others_);
        if (!others_.empty() && share_of_.size() > 1) integral_.assign(n * total_width(), 0.0);
    }

    void stage(const Point& at, const Factors&, double* speed) override {
        Spot here = spot(at);
        const double weight = others_.empty() ? 0.0 : share_of_[++at_stage_];
        residuals(here, here.sources, weight, speed + at.columns.size(), false);
        read_speed(at.columns, speed);
    }

    double arrive(const Point& end, double* speed) override {
        next_ = spot(end);
        const double value = residuals(next_, all_, 0.0, speed + end.columns.size(), true);
        read_speed(end.columns, speed);
        slope_.resize(others_.size());
        read_speed(others_, slope_.data());
        return value;
    }

    void finish(const double* z_now, const double* slope_now, double* z, double* slope) override {
        if (others_.empty()) return;
        for (size_t c = 0; c < others_.size(); ++c) {
            const Size j = others_[c];
            z[j] = z_now[j] + share_of_[0] * slope_now[j];
            slope[j] = slope_[c];
        }
        if (share_of_.size() < 2) return;
        std::fill(sums_.begin(), sums_.end(), 0.0);
        double* integral = integral_.data();
        each_run([&](Size d, Size i, Size m) {
            const States rows = choose(at_rest_, d, i, m, sums_.data());
            k_->add_states(rows, integral, tables_.data());
            integral += m * widths_[d];
        });
        read_speed(others_, slope_.data());
        for (size_t c = 0; c < others_.size(); ++c) z[others_[c]] += slope_[c];
    }

    void commit() override { std::swap(now_, next_); }

    // --- the loss and its Hessian
    double value(const Point& at) override {
        Spot here = spot(at);
        double value = 0;
        each_run([&](Size d, Size i, Size m) { value += loss(here, d, i, m, true); });
        return value;
    }

    void update_hessian() override {}  // that of `now` is made from it when it is asked for

    void hessian(const Point& v, double* out) override {
        Spot direction = spot(v);
        double* of_alpha = out + v.columns.size();
        std::fill(sums_.begin(), sums_.end(), 0.0), std::fill_n(of_alpha, n_alpha, 0.0);
        each_run([&](Size d, Size i, Size m) {
            predict(now_, d, i, m, share_.data());
            k_->share_states(nodes_[d].data.q, widths_[d], m, share_.data());
            predict(direction, d, i, m, tile_.data());
            const States rows = choose(direction.sources, d, i, m, sums_.data());
            k_->curve_states(rows, run(d, i), share_.data(), tile_.data());
            k_->add_states(rows, tile_.data(), tables_.data());
            add_totals(d, m, of_alpha);
        });
        read(v.columns, out);
    }

   private:
    using Sources = std::vector<std::vector<int32_t>>;  // of each node

    // Coefficients as tables, node after node, each (all states, width of the node).
    struct Spot {
        std::vector<double> tables, alpha;
        Sources sources;  // of which there are coefficients
    };

    // Which nodes some columns join.
    Sources join(const Index& columns) {
        Flags joined(p_ * p_, 0);
        for (const Size j : columns)
            for (Size i = j * places_; i < (j + 1) * places_; ++i) joined[pair_[i]] = 1;
        Sources sources(p_);
        for (Size pair = 0; pair < p_ * p_; ++pair)
            if (joined[pair]) sources[pair / p_].push_back(int32_t(pair % p_));
        return sources;
    }

    Spot spot(const Point& at) {
        Spot here{std::vector<double>(sums_.size(), 0.0), {at.alpha, at.alpha + n_alpha}, join(at.columns)};
        for (size_t c = 0; c < at.columns.size(); ++c)
            for (Size i = at.columns[c] * places_; i < (at.columns[c] + 1) * places_; ++i)
                here.tables[where_[i]] = at.beta[c];
        return here;
    }

    // What the sums in the tables say of some columns: derivatives, or their negatives.
    void read(const Index& columns, double* out) const {
        for (const Size j : columns) {
            *out = 0;
            for (Size i = j * places_; i < (j + 1) * places_; ++i) *out += sums_[where_[i]];
            ++out;
        }
    }

    void read_speed(const Index& columns, double* out) const {
        read(columns, out);
        for (size_t c = 0; c < columns.size(); ++c) out[c] = -out[c];
    }

    Size total_width() const { return std::accumulate(widths_.begin(), widths_.end(), Size{0}); }

    // Calls work(node, first row, rows) for runs of rows of one node after the other.
    template <class Work>
    void each_run(Work work) {
        for (Size d = 0; d < p_; ++d) {
            pause(double(n * widths_[d]) * double(p_));
            for (Size i = 0; i < n; i += kRowsTogether) work(d, i, std::min(kRowsTogether, n - i));
        }
    }

    // States of some sources of a node, whose tables are left in `tables_`.
    States choose(const Sources& sources, Size d, Size i, Size m, double* numbers) {
        columns_.clear(), tables_.clear();
        for (const int32_t j : sources[d]) {
            columns_.push_back(states_.data() + j * n + i);
            tables_.push_back(numbers + starts_[d] + nodes_[j].first * widths_[d]);
        }
        return {m, Size(columns_.size()), widths_[d], columns_.data()};
    }

    Data run(Size d, Size i) const {
        Data data = nodes_[d].data;
        data.y += i, data.w += i;
        return data;
    }

    void predict(Spot& at, Size d, Size i, Size m, double* eta) {
        std::fill(alpha_.begin(), alpha_.end(), 0.0);
        std::copy_n(at.alpha.data() + nodes_[d].first, nodes_[d].data.q, alpha_.data());
        const States rows = choose(at.sources, d, i, m, at.tables.data());
        k_->predict_states(rows, tables_.data(), alpha_.data(), eta);
    }

    // Leaves the residuals of a run in the tile.
    double loss(Spot& at, Size d, Size i, Size m, bool want_value) {
        predict(at, d, i, m, tile_.data());
        return k_->loss_states({m, 0, widths_[d], nullptr}, run(d, i), tile_.data(), want_value);
    }

    // Sums of the residuals at a point over the states of some sources, and the speed of alpha; adds the residuals to
    // the integral with a weight.
    double residuals(Spot& at, const Sources& sources, double weight, double* alpha_speed, bool want_value) {
        double value = 0, *integral = integral_.data();
        std::fill(sums_.begin(), sums_.end(), 0.0), std::fill_n(alpha_speed, n_alpha, 0.0);
        each_run([&](Size d, Size i, Size m) {
            value += loss(at, d, i, m, want_value);
            add_totals(d, m, alpha_speed);
            const States rows = choose(sources, d, i, m, sums_.data());
            k_->add_states(rows, tile_.data(), tables_.data());
            if (weight == 0) return;
            const Size size = m * widths_[d];
            for (Size e = 0; e < size; ++e) integral[e] += weight * tile_[e];
            integral += size;
        });
        for (Size l = 0; l < n_alpha; ++l) alpha_speed[l] *= -alpha_rate;
        return value;
    }

    void add_totals(Size d, Size m, double* of_alpha) const {
        const Size q = nodes_[d].data.q, width = widths_[d];
        double* total = of_alpha + nodes_[d].first;
        for (Size i = 0; i < m; ++i)
            for (Size l = 0; l < q; ++l) total[l] += tile_[i * width + l];
    }

    // How much of a step goes by the speed at each of its stages: the recursion, of these shares.
    void weigh(const Chebyshev::Stages& stages, double h) {
        const size_t count = stages.others.size() + 1;
        std::vector<double> before(count, 0.0);
        share_of_.assign(count, 0.0), share_of_[0] = stages.first * h;
        for (size_t j = 1; j < count; ++j) {
            const auto& [start, mu, nu, last, first] = stages.others[j - 1];
            for (size_t i = 0; i < count; ++i) before[i] = mu * share_of_[i] + nu * before[i];
            before[j] += last * h, before[0] += first * h;
            std::swap(share_of_, before);
        }
    }

    std::vector<Node> nodes_;
    Size p_, places_;
    std::vector<int32_t> states_, pair_;  // (nodes, n); of each place: to * p + from
    Index widths_, starts_, where_;       // of each node, and where its tables start; where each place is in the tables
    Index live_, others_;
    Sources all_, at_rest_;
    Spot now_, next_;
    std::vector<double> sums_, tile_, share_, alpha_, slope_, share_of_, integral_;
    size_t at_stage_ = 0;
    std::vector<const int32_t*> columns_;
    std::vector<double*> tables_;
};

}  // namespace

std::unique_ptr<Rows> state_rows(const Kernels* kernels, Size n, std::vector<Node> nodes, Places places,
                                 double alpha_rate) {
    return std::make_unique<StateRows>(kernels, n, std::move(nodes), std::move(places), alpha_rate);
}

}  // namespace bregpath

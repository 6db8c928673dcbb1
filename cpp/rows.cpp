#include "rows.hpp"

#include <algorithm>
#include <cstddef>

namespace bregpath {

namespace {
// Numbers of dense features that all nodes work on before the next rows: they stay in the cache.
constexpr long kNumbersTogether = 1 << 15, kMinRowsTogether = 64;
}  // namespace

// Loss and residual at a predictor: it is the offset of a design without columns.
double Rows::loss_at(Data data, long rows, const double* eta, double* r) {
    data.offset = eta;
    const double* no_column = nullptr;
    Columns none{};
    none.n = rows, none.dense = &no_column;
    zero_.assign(data.q, 0.0), scratch_.resize(size_t(rows) * data.q);
    return k_->gradient(none, data, zero_.data(), nullptr, scratch_.data(), r, nullptr, true);
}

// --- regression ------------------------------------------------------------------------------------------------

RegressionRows::RegressionRows(const Kernels* kernels, const Data& data, const Columns& columns, UserLoss user)
    : Rows(kernels, columns.n, data.q), data_(data), columns_(columns), user_(std::move(user)) {
    u_.assign(size, 0.0), h_.assign(size, 0.0), b_.assign(size_t(columns.k) * data.q, 0.0);
}

Columns RegressionRows::take(const Index& index) {
    Columns x = columns_;
    x.k = int(index.size());
    if (columns_.dense) {
        dense_.resize(index.size());
        for (size_t c = 0; c < index.size(); ++c) dense_[c] = columns_.dense[index[c]];
        x.dense = dense_.data();
        return x;
    }
    values_.resize(index.size()), rows_.resize(index.size()), counts_.resize(index.size());
    center_.resize(index.size()), scale_.resize(index.size());
    for (size_t c = 0; c < index.size(); ++c) {
        const int j = index[c];
        values_[c] = columns_.values[j], rows_[c] = columns_.rows[j], counts_[c] = columns_.counts[j];
        center_[c] = columns_.center[j], scale_[c] = columns_.scale[j];
    }
    x.values = values_.data(), x.rows = rows_.data(), x.counts = counts_.data();
    x.center = center_.data(), x.scale = scale_.data();
    return x;
}

double RegressionRows::gradient(const Index& index, const double* alpha, const double* beta, double* eta, double* r,
                                double* g, bool want_value) {
    const Columns x = take(index);
    if (!user_.evaluate) return k_->gradient(x, data_, alpha, beta, eta, r, g, want_value);
    k_->predict(x, data_, alpha, beta, eta);
    const double value = user_.evaluate(eta, r);
    k_->dots(x, data_.q, r, r, g, b_.data());
    return value;
}

void RegressionRows::predict(const Index& index, const double* alpha, const double* beta, double* eta) {
    k_->predict(take(index), data_, alpha, beta, eta);
}

double RegressionRows::value(const Index& index, const double* alpha, const double* beta, double* eta, double* r) {
    k_->predict(take(index), data_, alpha, beta, eta);
    if (user_.evaluate) return user_.evaluate(eta, r);
    return loss_at(data_, n, eta, r);
}

void RegressionRows::dots(const Index& index, const double* u, const double* v, double* a, double* b) {
    k_->dots(take(index), data_.q, u, v, a, b);
}

void RegressionRows::bend_at(const double* eta) {
    eta_ = eta;
    if (!user_.bend) k_->curvature(data_, n, eta, h_.data());
}

void RegressionRows::bend(const Index& index, const double* v0, const double* v, double* g, double* g0) {
    if (!user_.bend) {
        k_->bend(take(index), data_, h_.data(), v0, v, u_.data(), g, g0);
        return;
    }
    const Columns x = take(index);
    Data plain = data_;
    plain.offset = nullptr;
    k_->predict(x, plain, v0, v, u_.data());
    user_.bend(eta_, u_.data());
    k_->dots(x, data_.q, u_.data(), u_.data(), g, b_.data());
    totals(u_.data(), g0);
}

void RegressionRows::bend_rows(const Index& index, const double* v0, const double* v, double* u) {
    std::vector<double> g(index.size() * n_alpha), g0(n_alpha);
    bend(index, v0, v, g.data(), g0.data());
    std::copy_n(u_.begin(), size, u);
}

void RegressionRows::products(const Index& index, int count, const double* alpha, const double* beta, double* out) {
    Data plain{};
    plain.q = count;
    k_->predict(take(index), plain, alpha, beta, out);
}

// --- graphs ----------------------------------------------------------------------------------------------------

GraphRows::GraphRows(const Kernels* kernels, std::vector<Node> nodes, const Columns& features, std::vector<int> source,
                     std::vector<int> target, int places)
    : Rows(kernels, features.n, nodes.back().first + nodes.back().states), nodes_(std::move(nodes)),
      features_(features), source_(std::move(source)), target_(std::move(target)), places_(places) {
    for (size_t d = 0; d < nodes_.size(); ++d) node_of_.insert(node_of_.end(), nodes_[d].states, int(d));
    slot_.assign(nodes_.size() * size_t(features_.k), -1);
    u_.assign(size, 0.0), h_.assign(size, 0.0);
    // Sparse features, and nodes of several outputs that lie n apart, take all rows at once.
    together_ = has_grams() ? std::max(kMinRowsTogether, (kNumbersTogether / features_.k) & ~7L) : n;
    Index everything;
    for (size_t c = 0; c < source_.size() / places_; ++c) everything.push_back(int(c));
    all_ = make_plan(everything);
}

GraphRows::Plan GraphRows::make_plan(const Index& index) {
    Plan plan;
    plan.index = index;
    plan.features.resize(nodes_.size());
    plan.place.resize(index.size() * places_);
    for (size_t c = 0; c < plan.place.size(); ++c) {
        const size_t i = size_t(index[c / places_]) * places_ + c % places_;
        const int d = node_of_[target_[i]];
        int& slot = slot_[size_t(d) * features_.k + source_[i]];
        if (slot < 0) {
            slot = int(plan.features[d].size());
            plan.features[d].push_back(source_[i]);
        }
    }
    plan.start.assign(1, 0);
    for (size_t d = 0; d < nodes_.size(); ++d)
        plan.start.push_back(plan.start[d] + long(plan.features[d].size()) * nodes_[d].states);
    for (size_t c = 0; c < plan.place.size(); ++c) {
        const size_t i = size_t(index[c / places_]) * places_ + c % places_;
        const int d = node_of_[target_[i]];
        const long output = target_[i] - nodes_[d].first;
        plan.place[c] = plan.start[d] + output * long(plan.features[d].size()) +
                        slot_[size_t(d) * features_.k + source_[i]];
    }
    for (size_t d = 0; d < nodes_.size(); ++d)
        for (const int s : plan.features[d]) slot_[d * size_t(features_.k) + s] = -1;
    return plan;
}

const GraphRows::Plan& GraphRows::plan_of(const Index& index) {
    if (index.size() == all_.index.size()) return all_;
    if (index != some_.index || some_.features.empty()) some_ = make_plan(index);
    return some_;
}

void GraphRows::pack(const Plan& plan, const double* beta) {
    packed_.assign(plan.start.back(), 0.0);
    for (size_t c = 0; c < plan.place.size(); ++c) packed_[plan.place[c]] = beta[c / places_];
}

void GraphRows::unpack(const Plan& plan, const std::vector<double>& packed, double* out) const {
    for (size_t c = 0; c < plan.place.size(); ++c) {
        const double part = packed[plan.place[c]];
        out[c / places_] = c % places_ ? out[c / places_] + part : part;
    }
}

Columns GraphRows::columns_of(const std::vector<int>& features, long first_row, long rows) {
    Columns x = features_;
    x.n = rows, x.k = int(features.size());
    pointers_.resize(features.size());
    if (features_.dense) {
        for (size_t c = 0; c < features.size(); ++c) pointers_[c] = features_.dense[features[c]] + first_row;
        x.dense = pointers_.data();
        return x;
    }
    rows_.resize(features.size()), counts_.resize(features.size());
    center_.assign(features.size(), 0.0), scale_.assign(features.size(), 1.0);  // indicators are used as they are
    for (size_t c = 0; c < features.size(); ++c) {
        const int s = features[c];
        pointers_[c] = features_.values[s], rows_[c] = features_.rows[s], counts_[c] = features_.counts[s];
    }
    x.values = pointers_.data(), x.rows = rows_.data(), x.counts = counts_.data();
    x.center = center_.data(), x.scale = scale_.data();
    return x;
}

double GraphRows::gradient(const Index& index, const double* alpha, const double* beta, double* eta, double* r,
                           double* g, bool want_value) {
    const Plan& plan = plan_of(index);
    pack(plan, beta);
    g_.assign(plan.start.back(), 0.0), part_.resize(plan.start.back());
    double value = 0;
    for (long i = 0; i < n; i += together_) {
        const long rows = std::min(together_, n - i);
        for (size_t d = 0; d < nodes_.size(); ++d) {
            const Node& node = nodes_[d];
            const long at = plan.start[d], first = node.first * n + i;
            Data data = node.data;
            data.y += i, data.w += i;
            value += k_->gradient(columns_of(plan.features[d], i, rows), data, alpha + node.first, packed_.data() + at,
                                  eta + first, r + first, part_.data() + at, want_value);
            for (long c = at; c < plan.start[d + 1]; ++c) g_[c] += part_[c];
        }
    }
    unpack(plan, g_, g);
    return value;
}

void GraphRows::predict(const Index& index, const double* alpha, const double* beta, double* eta) {
    const Plan& plan = plan_of(index);
    pack(plan, beta);
    for (long i = 0; i < n; i += together_) {
        const long rows = std::min(together_, n - i);
        for (size_t d = 0; d < nodes_.size(); ++d)
            k_->predict(columns_of(plan.features[d], i, rows), nodes_[d].data, alpha + nodes_[d].first,
                        packed_.data() + plan.start[d], eta + nodes_[d].first * n + i);
    }
}

double GraphRows::value(const Index& index, const double* alpha, const double* beta, double* eta, double* r) {
    predict(index, alpha, beta, eta);
    double value = 0;
    for (const Node& node : nodes_) value += loss_at(node.data, n, eta + node.first * n, r + node.first * n);
    return value;
}

void GraphRows::dots(const Index& index, const double* u, const double* v, double* a, double* b) {
    // Most columns are asked for, so all of them are computed.
    const int outputs = n_alpha;
    const size_t k = features_.k;
    g_.resize(2 * k * outputs);
    if (features_.dense) {
        vectors_.clear();
        for (const double* from : {u, v})
            for (int l = 0; l < outputs; ++l) vectors_.push_back(from + l * n);
        k_->cross(features_.dense, int(k), vectors_.data(), 2 * outputs, n, g_.data());
    } else {
        Index everything;
        for (size_t s = 0; s < k; ++s) everything.push_back(int(s));
        k_->dots(columns_of(everything, 0, n), outputs, u, v, g_.data(), g_.data() + k * outputs);
    }
    for (size_t c = 0; c < index.size(); ++c) {
        a[c] = b[c] = 0;
        for (int place = 0; place < places_; ++place) {
            const size_t i = size_t(index[c]) * places_ + place, at = target_[i] * k + source_[i];
            a[c] += g_[at], b[c] += g_[k * outputs + at];
        }
    }
}

// --- curvature of graphs -----------------------------------------------------------------------------------------

void GraphRows::bend_at(const double* eta) {
    for (const Node& node : nodes_) k_->curvature(node.data, n, eta + node.first * n, h_.data() + node.first * n);
    if (!has_grams()) return;
    grams_.assign(nodes_.size(), {});
    gram_slot_.assign(nodes_.size() * size_t(features_.k), -1);
    ones_.assign(n, 1.0);
}

void GraphRows::bend(const Index& index, const double* v0, const double* v, double* g, double* g0) {
    const Plan& plan = plan_of(index);
    pack(plan, v);
    g_.resize(plan.start.back());
    for (size_t d = 0; d < nodes_.size(); ++d) {
        const long first = nodes_[d].first, at = plan.start[d];
        if (has_grams())
            bend_node(int(d), plan, v0[first], packed_.data() + at, g_.data() + at, g0 + first);
        else
            k_->bend(columns_of(plan.features[d], 0, n), nodes_[d].data, h_.data() + first * n, v0 + first,
                     packed_.data() + at, u_.data() + first * n, g_.data() + at, g0 + first);
    }
    unpack(plan, g_, g);
}

void GraphRows::bend_rows(const Index& index, const double* v0, const double* v, double* u) {
    predict(index, v0, v, u);
    if (has_grams()) {
        for (long i = 0; i < size; ++i) u[i] *= h_[i];
        return;
    }
    for (const Node& node : nodes_) k_->bend_rows(node.data, n, h_.data() + node.first * n, u + node.first * n);
}

// Add features to the Gram matrix of a node: a few at a time, against those that are there already.
void GraphRows::extend_gram(int d, const std::vector<int>& features) {
    constexpr size_t kTogether = 16;
    NodeGram& gram = grams_[d];
    int* slot = &gram_slot_[size_t(d) * features_.k];
    std::vector<int> added;
    if (gram.used.empty()) added.push_back(-1);
    for (const int s : features)
        if (slot[s] < 0) added.push_back(s);
    if (gram.used.size() + added.size() > gram.room) {
        const size_t old = gram.used.size(), room = old + added.size() + 8;
        std::vector<double> larger(room * room, 0.0);
        for (size_t i = 0; i < old; ++i) std::copy_n(&gram.matrix[i * gram.room], old, &larger[i * room]);
        gram.matrix.swap(larger), gram.room = room;
    }
    const double* h = h_.data() + size_t(d) * n;
    for (size_t begin = 0; begin < added.size(); begin += kTogether) {
        const size_t count = std::min(kTogether, added.size() - begin), old = gram.used.size();
        weighted_.resize(count * n), vectors_.clear(), pointers_.clear();
        for (size_t c = 0; c < count; ++c) {
            const int s = added[begin + c];
            const double* x = s < 0 ? ones_.data() : features_.dense[s];
            for (long i = 0; i < n; ++i) weighted_[c * n + i] = h[i] * x[i];
            vectors_.push_back(&weighted_[c * n]);
            if (s >= 0) slot[s] = int(gram.used.size());
            gram.used.push_back(s);
        }
        for (const int s : gram.used) pointers_.push_back(s < 0 ? ones_.data() : features_.dense[s]);
        const size_t k = gram.used.size();
        products_.resize(k * count);
        k_->cross(pointers_.data(), int(k), vectors_.data(), int(count), n, products_.data());
        for (size_t c = 0; c < count; ++c)
            for (size_t i = 0; i < k; ++i)
                gram.matrix[(old + c) * gram.room + i] = gram.matrix[i * gram.room + old + c] = products_[c * k + i];
    }
}

void GraphRows::bend_node(int d, const Plan& plan, double v0, const double* v, double* g, double* g0) {
    const std::vector<int>& features = plan.features[d];
    const int* slot = &gram_slot_[size_t(d) * features_.k];
    bool known = !grams_[d].used.empty();
    for (size_t c = 0; known && c < features.size(); ++c) known = slot[features[c]] >= 0;
    if (!known) extend_gram(d, features);
    const NodeGram& gram = grams_[d];
    Columns x{};
    pointers_.clear();
    for (const int s : features) pointers_.push_back(&gram.matrix[slot[s] * gram.room]);
    x.n = long(gram.used.size()), x.k = int(features.size()), x.dense = pointers_.data();
    // The column of the constant as the offset.
    products_.resize(2 * gram.used.size());
    for (size_t i = 0; i < gram.used.size(); ++i) products_[gram.used.size() + i] = v0 * gram.matrix[i];
    Data plain{};
    plain.q = 1, plain.offset = &products_[gram.used.size()];
    const double zero = 0;
    k_->predict(x, plain, &zero, v, products_.data());
    *g0 = products_[0];
    for (size_t c = 0; c < features.size(); ++c) g[c] = products_[slot[features[c]]];
}

}  // namespace bregpath

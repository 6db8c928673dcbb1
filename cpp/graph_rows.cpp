// One regression a node of a graph, on features of the other nodes; a coefficient has a place in one or two of them.
#include <algorithm>
#include <utility>

#include "data_rows.hpp"

namespace bregpath {

namespace {

// Numbers of dense features that all nodes work on before the next rows: they stay in the cache.
constexpr Size kNumbersTogether = 1 << 15, kMinRowsTogether = 64;

class GraphRows final : public DataRows {
   public:
    GraphRows(const Kernels* kernels, std::vector<Node> nodes, const Columns& features, Places places,
              double alpha_rate)
        : DataRows(kernels, features.n, nodes.back().first + nodes.back().data.q, alpha_rate,
                   Size(places.source.size()) / places.places, 1),
          nodes_(std::move(nodes)), features_(features), places_(places.places), source_(std::move(places.source)),
          target_(std::move(places.target)), slot_(nodes_.size() * features.k, -1), h_(size_), u_(size_) {
        for (size_t d = 0; d < nodes_.size(); ++d) node_of_.insert(node_of_.end(), nodes_[d].data.q, int32_t(d));
        // Sparse features, and nodes of several outputs that lie n apart, take all rows at once.
        const bool by_blocks = features.is_dense && n_alpha == Size(nodes_.size());
        together_ = by_blocks ? std::max(kMinRowsTogether, (kNumbersTogether / features_.k) & ~Size{7}) : n;
        all_ = lay_out(others_of({}, Size(source_.size()) / places_));
    }

    void hessian(const Point& v, double* out) override {
        pause(double(size_));
        const Layout& layout = layout_of(v.columns);
        pack(layout, v.beta);
        g_.resize(layout.start.back());
        for (size_t d = 0; d < nodes_.size(); ++d) {
            const Size first = nodes_[d].first;
            const double *of_alpha = v.alpha + first, *of_node = packed_.data() + layout.start[d];
            double *g = g_.data() + layout.start[d], *g0 = out + v.columns.size() + first;
            k_->hessian(choice_.of(features_, layout.features[d]), nodes_[d].data, h_.data() + first * n, of_alpha,
                        of_node, u_.data() + first * n, g, g0);
        }
        unpack(layout, out);
    }

   protected:
    void predict(const Point& at, double* eta) override {
        by_rows_and_nodes(at, [&](const Columns& x, const Node& node, Size i, Size begin) {
            k_->predict(x, node.data, at.alpha + node.first, packed_.data() + begin, eta + node.first * n + i);
        });
    }

    double loss(const double* eta, double* r) override {
        double value = 0;
        for (const Node& node : nodes_) value += k_->loss(node.data, n, eta + node.first * n, r + node.first * n);
        return value;
    }

    double gradient(const Point& at, double* eta, double* r, double* g, bool want_value) override {
        const Size size = layout_of(at.columns).start.back();
        g_.assign(size, 0.0), part_.resize(size);
        double value = 0;
        by_rows_and_nodes(at, [&](const Columns& x, const Node& node, Size i, Size begin) {
            const Size first = node.first * n + i;
            Data data = node.data;
            data.y += i, data.w += i;
            value += k_->gradient(x, data, at.alpha + node.first, packed_.data() + begin, eta + first, r + first,
                                  part_.data() + begin, want_value);
            for (Size c = begin; c < begin + x.k * data.q; ++c) g_[c] += part_[c];
        });
        unpack(layout_of(at.columns), g);
        return value;
    }

    void dots(const Index& columns, std::initializer_list<const double*> vectors, double* out) override {
        // Most columns are asked for, so all of them are computed.
        const Size k = features_.k;
        g_.resize(vectors.size() * k * n_alpha);
        multiply(features_, vectors, g_.data());
        for (size_t v = 0; v < vectors.size(); ++v)
            for (const Size j : columns) {
                *out = 0;
                for (Size i = j * places_; i < (j + 1) * places_; ++i)
                    *out += g_[(Size(v) * n_alpha + target_[i]) * k + source_[i]];
                ++out;
            }
    }

    void set_curvature(const double* eta) override {
        for (const Node& node : nodes_) k_->curvature(node.data, n, eta + node.first * n, h_.data() + node.first * n);
    }

   private:
    using Features = std::vector<int32_t>;

    // --- from coefficients to regressions, and back

    // Where the coefficients of some columns lie in the regressions: node after node, there output after output.
    struct Layout {
        Index columns;
        std::vector<Features> features;  // of each node
        Index start;                     // of each node
        Index place;                     // of each coefficient
    };

    Layout lay_out(const Index& columns) {
        Layout layout{columns, std::vector<Features>(nodes_.size()), {0}, Index(columns.size() * places_)};
        const auto place_of = [&](size_t c) { return columns[c / places_] * places_ + Size(c) % places_; };
        const auto slot_of = [&](Size i) -> int32_t& { return slot_[node_of_[target_[i]] * features_.k + source_[i]]; };
        for (size_t c = 0; c < layout.place.size(); ++c) {
            const Size i = place_of(c);
            Features& features = layout.features[node_of_[target_[i]]];
            if (slot_of(i) >= 0) continue;
            slot_of(i) = int32_t(features.size());
            features.push_back(source_[i]);
        }
        for (size_t d = 0; d < nodes_.size(); ++d)
            layout.start.push_back(layout.start[d] + Size(layout.features[d].size()) * nodes_[d].data.q);
        for (size_t c = 0; c < layout.place.size(); ++c) {
            const Size i = place_of(c), d = node_of_[target_[i]], output = target_[i] - nodes_[d].first;
            layout.place[c] = layout.start[d] + output * Size(layout.features[d].size()) + slot_of(i);
        }
        for (size_t c = 0; c < layout.place.size(); ++c) slot_of(place_of(c)) = -1;
        return layout;
    }

    const Layout& layout_of(const Index& columns) {
        if (columns.size() == all_.columns.size()) return all_;
        if (columns != some_.columns || some_.features.empty()) some_ = lay_out(columns);
        return some_;
    }

    void pack(const Layout& layout, const double* beta) {
        packed_.assign(layout.start.back(), 0.0);
        for (size_t c = 0; c < layout.place.size(); ++c) packed_[layout.place[c]] = beta[c / places_];
    }

    void unpack(const Layout& layout, double* out) const {
        for (size_t c = 0; c < layout.place.size(); ++c) {
            const double part = g_[layout.place[c]];
            out[c / places_] = Size(c) % places_ ? out[c / places_] + part : part;
        }
    }

    // Calls work(columns, node, first row, where its coefficients lie) for all nodes on some rows, then on the next.
    template <class Work>
    void by_rows_and_nodes(const Point& at, Work work) {
        const Layout& layout = layout_of(at.columns);
        pack(layout, at.beta);
        for (Size i = 0; i < n; i += together_)
            for (size_t d = 0; d < nodes_.size(); ++d)
                work(choice_.of(features_, layout.features[d], i, std::min(together_, n - i)), nodes_[d], i,
                     layout.start[d]);
    }

    std::vector<Node> nodes_;
    Columns features_;
    Size places_, together_;  // together: rows that all nodes work on before the next
    std::vector<int32_t> source_, target_, node_of_, slot_;
    Layout some_, all_;
    ColumnChoice choice_;
    std::vector<double> packed_, g_, part_, h_, u_;
};

}  // namespace

std::unique_ptr<Rows> graph_rows(const Kernels* kernels, std::vector<Node> nodes, const Columns& features,
                                 Places places, double alpha_rate) {
    return std::make_unique<GraphRows>(kernels, std::move(nodes), features, std::move(places), alpha_rate);
}

}  // namespace bregpath

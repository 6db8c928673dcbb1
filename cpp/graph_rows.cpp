// One regression a node of a graph, on features of the other nodes; a coefficient has a place in one or two of them.
#include <algorithm>
#include <utility>

#include "compact_gram.hpp"
#include "data_rows.hpp"

namespace bregpath {

namespace {

// Numbers of dense features that all nodes work on before the next rows: they stay in the cache.
constexpr Size kNumbersTogether = 1 << 15, kMinRowsTogether = 64;

class GraphRows final : public DataRows {
   public:
    GraphRows(const Kernels* kernels, std::vector<Node> nodes, const Columns& features, Places places,
              double alpha_rate, bool linear_stages)
        : DataRows(kernels, features.n, nodes.back().first + nodes.back().data.q, alpha_rate,
                   Size(places.source.size()) / places.places, 1, linear_stages),
          nodes_(std::move(nodes)), features_(features), places_(places.places), source_(std::move(places.source)),
          target_(std::move(places.target)), slot_(nodes_.size() * features.k, -1), h_(size_), u_(size_),
          ones_(features.n, 1.0) {
        for (size_t d = 0; d < nodes_.size(); ++d) node_of_.insert(node_of_.end(), nodes_[d].data.q, int32_t(d));
        // Sparse features, and nodes of several outputs that lie n apart, take all rows at once.
        together_ = has_grams() ? std::max(kMinRowsTogether, (kNumbersTogether / features_.k) & ~Size{7}) : n;
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
            if (has_grams())
                gram_product(Size(d), layout.features[d], *of_alpha, of_node, g, g0);
            else
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
        if (has_grams()) grams_.assign(nodes_.size(), CompactGram(features_.k + 1));
    }

    void hessian_rows(const Point& v, double* u) override {
        predict(v, u);
        for (const Node& node : nodes_)
            k_->apply_curvature(node.data, n, h_.data() + node.first * n, u + node.first * n);
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

    // --- Gram matrices of the curvature, one a node

    // Dense features and one output a node.
    bool has_grams() const { return features_.is_dense && n_alpha == Size(nodes_.size()); }

    // The constant is the item after the last feature.
    Column item(Size s) const { return s == features_.k ? Column{ones_.data()} : features_.at[s]; }

    // Entries of the items from `known` on: a few at a time, against all that came before.
    void fill_gram(Size d, Size known) {
        constexpr Size kTogether = 16;
        CompactGram& gram = grams_[d];
        const Features& used = gram.used();
        const double* h = h_.data() + d * n;
        for (Size end; known < Size(used.size()); known = end) {
            end = std::min(known + kTogether, Size(used.size()));
            weighted_.resize((end - known) * n), vectors_.clear(), columns_.clear();
            for (Size c = known; c < end; ++c) {
                const double* x = item(used[c]).values;
                double* weighted = &weighted_[(c - known) * n];
                for (Size i = 0; i < n; ++i) weighted[i] = h[i] * x[i];
                vectors_.push_back(weighted);
            }
            for (Size i = 0; i < end; ++i) columns_.push_back(item(used[i]));
            products_.resize(end * (end - known));
            k_->dots({n, end, columns_.data(), true}, vectors_.data(), end - known, products_.data());
            for (Size c = known; c < end; ++c)
                for (Size i = 0; i < end; ++i) gram.set(c, i, products_[(c - known) * end + i]);
        }
    }

    void gram_product(Size d, const Features& features, double v0, const double* v, double* g, double* g0) {
        CompactGram& gram = grams_[d];
        const Size known = Size(gram.used().size());
        items_.assign(1, int32_t(features_.k)), items_.insert(items_.end(), features.begin(), features.end());
        of_items_.assign(1, v0), of_items_.insert(of_items_.end(), v, v + features.size());
        gram.add(items_);
        fill_gram(d, known);
        gram.choose(items_);
        const std::vector<double>& product = gram.product(k_, of_items_.data());
        *g0 = product[0];
        for (size_t c = 0; c < features.size(); ++c) g[c] = product[gram.position(features[c])];
    }

    std::vector<Node> nodes_;
    Columns features_;
    Size places_, together_;  // together: rows that all nodes work on before the next
    std::vector<int32_t> source_, target_, node_of_, slot_;
    Layout some_, all_;
    ColumnChoice choice_;
    std::vector<CompactGram> grams_;
    std::vector<double> packed_, g_, part_, h_, u_, ones_, weighted_, products_, of_items_;
    Features items_;
    std::vector<Column> columns_;
};

}  // namespace

std::unique_ptr<Rows> graph_rows(const Kernels* kernels, std::vector<Node> nodes, const Columns& features,
                                 Places places, double alpha_rate, bool linear_stages) {
    return std::make_unique<GraphRows>(kernels, std::move(nodes), features, std::move(places), alpha_rate,
                                       linear_stages);
}

}  // namespace bregpath

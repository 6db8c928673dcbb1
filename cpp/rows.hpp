// What a stepper asks of the data: predictors, residuals and slopes of some columns.
#pragma once

#include <functional>
#include <vector>

#include "kernels.hpp"

namespace bregpath {

using Index = std::vector<int>;  // columns of a working set

// Arrays over rows have `size` numbers: output after output, all rows of each. `alpha` is one number an output. Arrays
// over columns hold those of the index only, output after output.
class Rows {
   public:
    Rows(const Kernels* kernels, long n, int n_alpha) : n(n), n_alpha(n_alpha), size(n * n_alpha), k_(kernels) {}
    virtual ~Rows() = default;

    const long n;
    const int n_alpha;
    const long size;

    // eta = alpha + X beta, r = d loss / d eta, g = X' r; returns the loss when wanted.
    virtual double gradient(const Index& index, const double* alpha, const double* beta, double* eta, double* r,
                            double* g, bool want_value) = 0;
    // eta alone.
    virtual void predict(const Index& index, const double* alpha, const double* beta, double* eta) = 0;
    // The loss, with eta and r, without g.
    virtual double value(const Index& index, const double* alpha, const double* beta, double* eta, double* r) = 0;
    // a = X' u and b = X' v.
    virtual void dots(const Index& index, const double* u, const double* v, double* a, double* b) = 0;
    // Products with the curvature H at eta: u = H (v0 + X v), or g = X' u and g0 = 1' u.
    virtual void bend_at(const double* eta) = 0;
    virtual void bend(const Index& index, const double* v0, const double* v, double* g, double* g0) = 0;
    virtual void bend_rows(const Index& index, const double* v0, const double* v, double* u) = 0;

    // Sums over the rows, one an output.
    void totals(const double* r, double* out) const { k_->totals(n, n_alpha, r, out); }

   protected:
    double loss_at(Data data, long rows, const double* eta, double* r);
    const Kernels* k_;

   private:
    std::vector<double> zero_, scratch_;
};

// A loss written in Python, on whole vectors: its value and residual at eta, and its curvature applied to u (in place).
struct UserLoss {
    std::function<double(const double* eta, double* r)> evaluate;
    std::function<void(const double* eta, double* u)> bend;
};

// Columns of a matrix, with the same columns for every output.
class RegressionRows final : public Rows {
   public:
    RegressionRows(const Kernels* kernels, const Data& data, const Columns& columns, UserLoss user);

    double gradient(const Index& index, const double* alpha, const double* beta, double* eta, double* r, double* g,
                    bool want_value) override;
    void predict(const Index& index, const double* alpha, const double* beta, double* eta) override;
    double value(const Index& index, const double* alpha, const double* beta, double* eta, double* r) override;
    void dots(const Index& index, const double* u, const double* v, double* a, double* b) override;
    void bend_at(const double* eta) override;
    void bend(const Index& index, const double* v0, const double* v, double* g, double* g0) override;
    void bend_rows(const Index& index, const double* v0, const double* v, double* u) override;

    // `count` sets of coefficients: out = alpha + X beta without an offset.
    void products(const Index& index, int count, const double* alpha, const double* beta, double* out);
    bool has_columns() const { return columns_.dense || columns_.values; }
    const Data& data() const { return data_; }

   private:
    Columns take(const Index& index);

    Data data_;
    Columns columns_;
    UserLoss user_;
    const double* eta_ = nullptr;  // where bend() bends a user's loss
    std::vector<double> h_, u_, b_;
    std::vector<const double*> dense_, values_;
    std::vector<const int32_t*> rows_;
    std::vector<long> counts_;
    std::vector<double> center_, scale_;
};

// One regression a node, on features of the other nodes; a coefficient has a place in one or two of them.
class GraphRows final : public Rows {
   public:
    struct Node {
        int first, states;  // its outputs
        Data data;
    };

    // `source` and `target` hold `places` numbers a coefficient: a feature, and the output it acts on.
    GraphRows(const Kernels* kernels, std::vector<Node> nodes, const Columns& features, std::vector<int> source,
              std::vector<int> target, int places);

    double gradient(const Index& index, const double* alpha, const double* beta, double* eta, double* r, double* g,
                    bool want_value) override;
    void predict(const Index& index, const double* alpha, const double* beta, double* eta) override;
    double value(const Index& index, const double* alpha, const double* beta, double* eta, double* r) override;
    void dots(const Index& index, const double* u, const double* v, double* a, double* b) override;
    void bend_at(const double* eta) override;
    void bend(const Index& index, const double* v0, const double* v, double* g, double* g0) override;
    void bend_rows(const Index& index, const double* v0, const double* v, double* u) override;

   private:
    // Where the coefficients of some columns lie in the regressions: node after node, there output after output.
    struct Plan {
        Index index;
        std::vector<std::vector<int>> features;  // of each node
        std::vector<long> start;                 // of each node
        std::vector<long> place;                 // of each coefficient
    };
    // Gram matrix of the curvature at a node, of the features used since it was taken; the first is the constant.
    struct NodeGram {
        std::vector<int> used;
        std::vector<double> matrix;
        size_t room = 0;
    };
    // Dense features and one output a node.
    bool has_grams() const { return features_.dense && n_alpha == int(nodes_.size()); }
    void extend_gram(int d, const std::vector<int>& features);
    void bend_node(int d, const Plan& plan, double v0, const double* v, double* g, double* g0);
    Plan make_plan(const Index& index);
    const Plan& plan_of(const Index& index);
    void pack(const Plan& plan, const double* beta);
    void unpack(const Plan& plan, const std::vector<double>& packed, double* out) const;
    Columns columns_of(const std::vector<int>& features, long first_row, long rows);

    std::vector<Node> nodes_;
    Columns features_;
    std::vector<int> source_, target_, node_of_, slot_;
    int places_;
    long together_;  // rows that all nodes work on before the next
    Plan some_, all_;
    std::vector<NodeGram> grams_;
    std::vector<int> gram_slot_;  // of each feature at each node
    std::vector<double> packed_, g_, part_, h_, u_, b_, ones_, weighted_, products_;
    std::vector<const double*> pointers_, vectors_;
    std::vector<const int32_t*> rows_;
    std::vector<long> counts_;
    std::vector<double> center_, scale_;
};

}  // namespace bregpath

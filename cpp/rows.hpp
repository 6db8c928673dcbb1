// The owner of everything of size n: data, loss, working columns, and the vectors R, residual and eta at two times, `now`
// and `next`. Only vectors over working columns and unpenalised parameters (alpha) pass between it and the stepper.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "chebyshev.hpp"
#include "kernels.hpp"
#include "penalty.hpp"

namespace bregpath {

// Coefficients of some columns, output after output, and alpha; or a direction in their space.
struct Point {
    const Index& columns;
    const double* beta;
    const double* alpha;
};

class Rows {
   public:
    // d alpha / dt = -alpha_rate d loss / d alpha.
    Rows(const Kernels* kernels, Size n, Size n_alpha, double alpha_rate)
        : n(n), n_alpha(n_alpha), alpha_rate(alpha_rate), k_(kernels) {}
    virtual ~Rows() = default;

    // Rows of R and residual that pass the border: none where nothing is made of them.
    virtual Size n_kept() const { return n; }
    // Columns that are multiplied by the patterns of their rows where that pays.
    virtual Size n_grouped() const { return 0; }
    // Rows that steps work on, where one may stand for many that are alike.
    virtual Size n_at_work() const { return n; }

    const Size n, n_alpha;
    const double alpha_rate;
    // Called between two pieces of work with the size of one; it may throw, and so abandon an unfinished step.
    std::function<void(double)> pause = [](double) {};

    // --- the border: arrays (n, n_alpha) of Python
    // Set `now`, a point of a path with its R and residual.
    virtual void load(const Point& at, const double* R, const double* residual) = 0;
    // R and residual of `now`, which may be written by flush() only.
    virtual void store(double* R, double* residual) = 0;
    virtual void flush() {}

    // --- a step from `now`, in which some columns are live; `speed` is that of their z, then that of alpha
    // The first of the stages of a step of length h.
    virtual void begin(const Point& now, const double* speed, double h, const Chebyshev::Stages& stages) = 0;
    // The speed at a stage, and the one after it of what is of size n.
    virtual void stage(const Point& at, const Factors& factors, double* speed) = 0;
    // The end of the step: `next`, its loss, and its speed.
    virtual double arrive(const Point& end, double* speed) = 0;
    // z and its speed, from those at `now`, of the columns that were not live; the others are the stepper's own.
    virtual void finish(const double* z_now, const double* slope_now, double* z, double* slope) = 0;
    // `next` becomes `now`.
    virtual void commit() = 0;

    // --- the loss and its Hessian
    virtual double value(const Point& at) = 0;
    // The same, the residual (n, n_alpha) of Python, and the speed of the columns and alpha.
    virtual double look(const Point&, double* /* residual */, double* /* speed */) { throw std::logic_error("nobody looks here"); }
    // Whether it is infinite in places.
    virtual bool has_domain() const { return false; }
    // Use the Hessian at `now`, unless a frozen one is in use.
    virtual void update_hessian() = 0;
    // A product with the Hessian: of the columns of v, then of alpha.
    virtual void hessian(const Point& v, double* out) = 0;

    // --- linear stages: the loss is linearised in a step, with the Hessian frozen at an earlier predictor
    virtual bool has_linear_stages() const { return false; }
    virtual void freeze() {}                    // at `now`
    virtual void load_frozen(const double*) {}  // (n, n_alpha) of Python
    virtual void store_frozen(double*) const {}

   protected:
    const Kernels* k_;
};

// --- regression_rows.cpp: columns of a matrix, with the same columns for every output

// A loss written in Python, on whole vectors: its value and residual at eta, and its curvature there applied to u (in
// place).
struct UserLoss {
    std::function<double(const double* eta, double* r)> evaluate;
    std::function<void(const double* eta, double* u)> curvature;
};

std::unique_ptr<Rows> regression_rows(const Kernels*, const Data&, const Columns&, double alpha_rate, UserLoss = {});

// --- gram_rows.cpp: squared loss with the Gram matrix of the columns

// Moments of second order are about the means; see flow/gram.py.
struct Moments {
    const double* matrix;  // (m, stride) of which m x m are the moments of the columns
    Size stride;
    const double* mean;    // (m) X'w
    const double* target;  // (m) moments of the columns with y - offset
    double y_mean, y_square;
};

// Columns without numbers: then R and the residual stay as they were loaded.
std::unique_ptr<Rows> gram_rows(const Kernels*, const Data&, const Columns&, const Moments&, double alpha_rate);

// --- graph_rows.cpp: one regression a node, on features of the other nodes

struct Node {
    Size first;  // of its data.q outputs
    Data data;
};

// A coefficient has a place in one or two regressions: `source` and `target` hold `places` numbers each, a feature and
// the output that it acts on.
struct Places {
    std::vector<int32_t> source, target;
    Size places;
};

std::unique_ptr<Rows> graph_rows(const Kernels*, std::vector<Node>, const Columns& features, Places,
                                 double alpha_rate);

// --- spin_rows.cpp: the same for linear stages, where all features are -1 or 1 and a node has one output

std::unique_ptr<Rows> spin_rows(const Kernels*, std::vector<Node>, const Columns& features, Places, double alpha_rate);

// --- state_rows.cpp: the same where the features are indicators of the states of the nodes, all columns work, and R is
// not asked for: nothing of the size of all predictors is kept but one integral

std::unique_ptr<Rows> state_rows(const Kernels*, Size n, std::vector<Node>, Places, double alpha_rate);

// --- precision_rows.cpp: entries of a precision matrix

struct Covariance {
    Size p;
    const double* matrix;  // (p, p)
    Index above;           // places j * p + k, j < k, of the columns
};

std::unique_ptr<Rows> likelihood_rows(const Kernels*, const Covariance&, double alpha_rate);
// Infinite where a matrix with unit diagonal would have an eigenvalue below the margin.
std::unique_ptr<Rows> composite_rows(const Kernels*, const Covariance&, double alpha_rate, double margin);

}  // namespace bregpath

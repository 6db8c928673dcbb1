// Blocks of steps on a working set of columns: the compiled twin of _kernels/reference.py, which explains them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "rows.hpp"

namespace bregpath {

// Mirror map of the penalty on m columns and q outputs; arrays are stored output by output.
struct Penalty {
    int m = 0, q = 1, n_groups = 0;
    std::vector<double> weights, lower, upper;
    std::vector<int> group;  // empty: every coordinate for itself
    bool has_limits = false, has_box = false;  // any limit; any limit other than 0

    double allowed(double z, long i) const;
    // Distance to their thresholds of the columns `index` (whole groups); arrays are stored for those columns only.
    void entry(const std::vector<int>& index, const double* z, double* out);
    // Coefficients of the columns `index` at z, likewise.
    void primal(const std::vector<int>& index, const double* z, double kappa, double* beta);
    // Extend a set of columns to whole groups.
    void close(std::vector<char>& columns) const;

    void prepare() {
        for (auto* v : {&norms_, &low_, &high_}) v->assign(n_groups, 0.0);
    }

   private:
    void group_norms(const std::vector<int>& index, const double* z);  // squared
    void boxed_groups(const std::vector<int>& index, const double* z, double kappa, double* beta);
    std::vector<double> norms_, low_, high_;
};

// The state between two steps; see Knot in records.py.
struct State {
    double t = 0, value = 0, h = 0, reach = 0, rate = 0;
    int age = 0;
    std::vector<double> alpha, alpha_slope, z, slope, R, residual, eta, direction, alpha_direction;
    // With a Gram matrix the integral of the coefficients stands for R, and eta is not kept.
    double alpha_integral = 0;
    std::vector<double> beta_integral;
    long gradients = 0, products = 0;
};

// Squared loss only: with the Gram matrix of the columns a gradient costs no pass over the rows. Moments of second
// order are about the means; see flow/gram.py.
struct Gram {
    const double* matrix = nullptr;  // (m, stride) of which m x m are the moments of the columns, or null
    long stride = 0;
    const double* mean = nullptr;    // (m) X'w
    const double* target = nullptr;  // (m) moments of the columns with y - offset
    double y_mean = 0, y_square = 0;
};

struct Unstable {
    double t, largest;
};
struct Stalled {
    double t;
};

class Stepper {
   public:
    Stepper(const Kernels* kernels, std::unique_ptr<Rows> rows, Penalty penalty, double kappa, bool fit_intercept,
            double fixed_step, double tol, bool linear_stages = false);
    // Squared loss: the Gram matrix stands for the rows, which may be absent.
    Stepper(const Kernels* kernels, std::unique_ptr<RegressionRows> rows, Penalty penalty, double kappa,
            bool fit_intercept, double fixed_step, double tol, const Gram& gram);

    State state;
    // Called between two pieces of work with the size of one; it may throw, and so abandon an unfinished step.
    std::function<void(double)> pause = [](double) {};
    // Linear stages: the predictor at which the curvature is frozen, and its time.
    std::vector<double> frozen;
    double frozen_t = 0;
    void set_frozen(std::vector<double> eta, double t);
    bool has_linear_stages() const { return linear_; }
    void begin();        // after a new state was set
    void step();         // throws Unstable or Stalled
    double value(const double* alpha, const double* beta);
    void update_rows();  // bring R and residual up to the state, where there are rows

   private:
    void fixed_step();
    void commit();
    void adaptive_step();
    bool chebyshev_step(double h, int stages, const std::vector<int>& live);
    bool linear_step(double h, int stages, const std::vector<int>& live);
    double evaluate(const std::vector<int>& live, const double* alpha, const double* beta, double* eta, double* r,
                    double* slope, bool want_value);
    void finish(const std::vector<int>& live, double h);
    void gram_finish(const std::vector<int>& live, double h);
    void gram_product(const std::vector<int>& live, int count, const double* beta, double* out);
    void gram_product_live(const std::vector<int>& live, const double* beta, double* out);
    void multiply(const std::vector<const double*>& columns, long rows, int count, const double* beta,
                  double* out) const;
    std::vector<int> active(const std::vector<double>& z, std::vector<double>& entry);
    double error(double h, const std::vector<int>& live);
    // Power iteration from the direction of a state, which it renews.
    double curvature_rate(std::vector<char> columns, int iterations, State& at);
    double shorten_to_entry(double h, double slack, std::vector<char>& entering);
    void alpha_slope(const double* residual, double* out) const;
    bool has_many_new(const std::vector<char>& started) const;
    void gather(const std::vector<int>& index, const std::vector<double>& from, std::vector<double>& to) const;
    bool above_rounding(double value) const;

    const Kernels* k_;
    std::unique_ptr<Rows> rows_;
    RegressionRows* regression_ = nullptr;  // the same, where there is a Gram matrix
    Penalty penalty_;
    Gram gram_;
    double kappa_, fixed_, tol_;
    bool intercept_, linear_;
    long n_;
    int m_, q_, a_count_;  // columns, coefficients of each, unpenalised parameters

    State next_;
    double t_base_ = 0;
    std::vector<double> R_base_, y_, compact_, pair_, over_all_, integral1_, integral2_, beta0_, changed_, speed_;
    std::vector<int> used_, position_, everything_;
    std::size_t room_ = 0;
    std::vector<const double*> gram_pointers_;
    std::vector<double> entry_now_, entry_then_, moved_, beta_, g_, r_, v_, u_, a_, b_, dR_, z_live_, slope_live_;
    std::vector<double> z1_, z2_, R1_, R2_, alpha1_, alpha2_;
};

}  // namespace bregpath

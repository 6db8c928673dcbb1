// Steps on a working set of columns: the compiled twin of _kernels/reference.py, which explains them. All that is of
// size n belongs to the rows; here are vectors over working columns, and scalars.
#pragma once

#include <memory>
#include <vector>

#include "rows.hpp"

namespace bregpath {

// See _kernels/reference.py and _kernels/chebyshev.py for the constants, which are handed over by their names there.
struct Settings {
    double kappa, fixed_step, tol;  // fixed_step: 0 for adaptive ones
    double safety, rate_margin, rate_share, entry_share, freeze_growth, min_progress, seen, rounding, noise;
    double damping, stability, rate_steps;
    Size entry_floor, max_attempts, max_stages;
};

// Between two steps; see Knot in records.py.
struct State {
    double t = 0, value = 0, h = 0, reach = 0, rate = 0, frozen_t = 0, age = 0, gradients = 0, products = 0;
    std::vector<double> alpha, alpha_slope, z, slope, direction, alpha_direction;
};

struct Unstable {
    double largest;  // stable step
};
struct Stalled {};

class Stepper {
   public:
    Stepper(const Kernels* kernels, std::unique_ptr<Rows> rows, Penalty penalty, const Settings& settings);

    State state;
    Rows& rows() { return *rows_; }
    // After a new state was set: the rows there.
    void load(const double* R, const double* residual);
    void step();  // throws Unstable or Stalled
    // The loss at coefficients of all columns.
    double value(const double* alpha, const double* beta);

   private:
    void fixed_step();
    void adaptive_step();
    void renew_curvature(const Flags& started);
    void freeze();
    bool attempt(double h, Size stages, const Index& live);
    void finish(const Index& live);
    void commit();
    double error(double h, const Index& live);
    Point at(const Index& columns, const std::vector<double>& beta, const std::vector<double>& z_and_alpha) const;
    // Power iteration from the direction of a state, which it renews.
    double curvature_rate(Flags columns, int iterations, State& of);
    double shorten_to_entry(double h, double slack, Flags& entering);
    Flags active(const std::vector<double>& z, std::vector<double>& entry);
    bool has_many_new(const Flags& started) const;
    bool above_rounding(double value) const;
    void gather(const Index& index, const std::vector<double>& from, const std::vector<double>& alpha,
                std::vector<double>& to) const;
    void scatter(const Index& index, const double* from, std::vector<double>& to) const;

    const Kernels* k_;
    std::unique_ptr<Rows> rows_;
    Penalty penalty_;
    const Settings set_;
    Chebyshev method_;
    const Size m_, q_, n_alpha_;  // columns, coefficients of each, unpenalised parameters

    State next_;
    Index everything_;
    std::vector<double> entry_now_, entry_then_, moved_;
    // Of the live columns, then alpha, through a step.
    Recursion moving_;
    std::vector<double> start_, start_speed_, start_beta_, beta_, speed_;
};

}  // namespace bregpath

// What exponential steps take from Python, and where they leave their knots.
#pragma once

#include "arguments.hpp"

namespace bregpath {

struct ExponentialSettings {
    double kappa, tol, shift, least_shift, shorter, start_share, mode_share, knot_share, negligible, breakdown, tie, least_trial, after_event, after_none, least_step,
        least_scale, rounding, step_bits, nudge;
    Size seldom, max_modes, max_inner, max_root;

    explicit ExponentialSettings(const Named& set)
        : kappa(set.get<double>("kappa")), tol(set.get<double>("tol")), shift(set.get<double>("SHIFT")),
          least_shift(set.get<double>("LEAST_SHIFT")), shorter(set.get<double>("SHORTER")), start_share(set.get<double>("START_SHARE")), mode_share(set.get<double>("MODE_SHARE")),
          knot_share(set.get<double>("KNOT_SHARE")), negligible(set.get<double>("NEGLIGIBLE")),
          breakdown(set.get<double>("BREAKDOWN")), tie(set.get<double>("TIE")),
          least_trial(set.get<double>("LEAST_TRIAL")), after_event(set.get<double>("AFTER_EVENT")),
          after_none(set.get<double>("AFTER_NONE")), least_step(set.get<double>("LEAST_STEP")),
          least_scale(set.get<double>("LEAST_SCALE")), rounding(set.get<double>("ROUNDING")),
          step_bits(set.get<double>("STEP_BITS")), nudge(set.get<double>("NUDGE")),
          seldom(set.get<Size>("SELDOM")), max_modes(set.get<Size>("MAX_MODES")), max_inner(set.get<Size>("MAX_INNER")),
          max_root(set.get<Size>("MAX_ROOT")) {}
};

// Knots of a path, one after the other, with all coordinates; integrals only where somebody asks for them.
struct ExponentialKnots {
    Size all, integrals;
    double *t, *value, *z, *slope, *integral;

    ExponentialKnots from(Size k) const {
        return {all, integrals, t + k, value + k, z + k * all, slope + k * all, integral + k * integrals};
    }
};

}  // namespace bregpath

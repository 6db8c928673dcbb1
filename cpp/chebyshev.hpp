// The Runge-Kutta-Chebyshev method: its coefficients, which _kernels/chebyshev.py explains, and its recursion.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "kernels.hpp"

namespace bregpath {

// What a new stage takes of the start, the last stage, the one before, the speed at the last one and that at the start.
using Factors = std::array<double, 5>;

class Chebyshev {
   public:
    Chebyshev(double damping, double stability) : damping_(damping), stability_(stability) {}

    struct Stages {
        double first = 1;  // share of a step after which the first stage lies; with no other one it is Euler's method
        std::vector<Factors> others;  // for a step of length 1
        std::vector<double> shares = {1};  // of the speeds at the start and at the stages in the whole step
    };

    const Stages& stages(Size s) {
        const auto found = known_.find(s);
        return found != known_.end() ? found->second : known_.emplace(s, make(s)).first->second;
    }

    // Fewest stages that are stable for a step of this length times the largest decay rate, and the longest such step.
    Size stages_needed(double step_times_rate) const {
        const double s = std::ceil(std::sqrt(1.0 + stability_ * step_times_rate));
        return s > 2 ? Size(std::min(s, 1e6)) : 2;
    }
    double longest_step(Size stages, double rate) const { return (double(stages) * stages - 1) / (stability_ * rate); }

   private:
    Stages make(Size s) const {
        Stages c;
        if (s < 2) return c;
        const double w0 = 1.0 + damping_ / (double(s) * s);
        std::vector<double> T(s + 1), dT(s + 1), ddT(s + 1), b(s + 1);
        T[0] = 1, T[1] = w0, dT[1] = 1;
        for (Size j = 2; j <= s; ++j) {
            T[j] = 2 * w0 * T[j - 1] - T[j - 2];
            dT[j] = 2 * w0 * dT[j - 1] - dT[j - 2] + 2 * T[j - 1];
            ddT[j] = 2 * w0 * ddT[j - 1] - ddT[j - 2] + 4 * dT[j - 1];
            b[j] = ddT[j] / (dT[j] * dT[j]);
        }
        const double w1 = dT[s] / ddT[s];
        b[0] = b[1] = b[2];
        c.first = b[1] * w1;
        for (Size j = 2; j <= s; ++j) {
            const double mu = 2 * b[j] * w0 / b[j - 1], nu = -b[j] / b[j - 2], mu1 = 2 * b[j] * w1 / b[j - 1];
            c.others.push_back({1 - mu - nu, mu, nu, mu1, -(1.0 - b[j - 1] * T[j - 1]) * mu1});
        }
        c.shares = shares_of(c);
        return c;
    }

    // The recursion, of what stages have of each speed.
    static std::vector<double> shares_of(const Stages& c) {
        const size_t s = c.others.size() + 1;
        std::vector<double> before(s, 0.0), stage(s, 0.0);
        stage[0] = c.first;
        for (size_t j = 1; j < s; ++j) {
            const Factors& f = c.others[j - 1];
            for (size_t i = 0; i < s; ++i) before[i] = f[1] * stage[i] + f[2] * before[i];
            before[j] += f[3], before[0] += f[4];
            std::swap(stage, before);
        }
        return stage;
    }

    double damping_, stability_;
    std::map<Size, Stages> known_;
};

// Numbers that move through the stages of a step. What begin() is given must stay until the end of the step.
class Recursion {
   public:
    // The first stage, `length` after the start.
    void begin(Size size, const double* start, const double* speed, double length) {
        start_ = start, speed_ = speed;
        before_.assign(start, start + size), stage_.resize(size);
        for (Size i = 0; i < size; ++i) stage_[i] = start[i] + length * speed[i];
    }
    // The next one, from the speed at the last.
    void next(const Kernels* kernels, const Factors& factors, const double* speed) {
        const double* parts[5] = {start_, stage_.data(), before_.data(), speed, speed_};
        kernels->combine(Size(stage_.size()), factors.data(), parts, before_.data());
        std::swap(stage_, before_);
    }
    std::vector<double>& stage() { return stage_; }

   private:
    const double *start_ = nullptr, *speed_ = nullptr;
    std::vector<double> stage_, before_;
};

}  // namespace bregpath

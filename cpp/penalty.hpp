// Mirror maps of the dual variable: the compiled twin of bregpath/penalties.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels.hpp"

namespace bregpath {

using Index = std::vector<Size>;  // columns of a working set
using Flags = std::vector<char>;  // one a column of a working set

inline Index marked(const Flags& columns) {
    Index index;
    for (size_t j = 0; j < columns.size(); ++j)
        if (columns[j]) index.push_back(Size(j));
    return index;
}

// The columns of a working set of m that are none of some, which are in order.
inline Index others_of(const Index& some, Size m) {
    Index others;
    others.reserve(m - some.size());
    for (Size j = 0, c = 0; j < m; ++j) {
        if (c < Size(some.size()) && some[c] == j)
            ++c;
        else
            others.push_back(j);
    }
    return others;
}

// Of m columns and q outputs, stored output by output. Its methods take and give arrays for the columns `index` alone,
// which are whole groups.
class Penalty {
   public:
    // Without groups every coordinate is for itself; limits of 0 forbid a sign.
    Penalty(Size m, Size q, std::vector<double> weights, std::vector<double> lower, std::vector<double> upper,
            Index groups)
        : m(m), q(q), weights_(std::move(weights)), lower_(std::move(lower)), upper_(std::move(upper)),
          group_(std::move(groups)) {
        for (const auto* limits : {&lower_, &upper_})
            for (const double limit : *limits) {
                has_limits_ = has_limits_ || std::isfinite(limit);
                has_box_ = has_box_ || (std::isfinite(limit) && limit != 0);
            }
        const Size n_groups = group_.empty() ? 0 : *std::max_element(group_.begin(), group_.end()) + 1;
        for (auto* v : {&squares_, &along_, &low_, &high_}) v->assign(n_groups, 0.0);
        is_limited_.assign(n_groups, 0);
        for (Size i = 0; i < m * q && n_groups > 0; ++i)
            if (std::isfinite(lower_[i]) || std::isfinite(upper_[i])) is_limited_[group_[i % m]] = 1;
    }

    const Size m, q;

    // Distance to their thresholds: negative once a coordinate is active.
    void entry(const Index& index, const double* z, double* out) {
        constexpr double kFree = -std::numeric_limits<double>::infinity();
        if (group_.empty() && !has_limits_ && Size(index.size()) == m) {  // all columns: one plain loop
            for (Size i = 0; i < m * q; ++i) out[i] = weights_[i] == 0 ? kFree : weights_[i] - std::abs(z[i]);
            return;
        }
        square_groups(index, z);
        each(index, [&](Size at, Size i, Size j) {
            const double size = group_.empty() ? std::abs(allowed(z[at], i)) : size_of_group(j);
            out[at] = weights_[i] == 0 ? kFree : weights_[i] - size;
        });
    }

    // Coefficients at z.
    void primal(const Index& index, const double* z, double kappa, double* beta) {
        square_groups(index, z);
        if (has_box_ && !group_.empty()) return boxed_groups(index, z, kappa, beta);
        each(index, [&](Size at, Size i, Size j) {
            const double a = allowed(z[at], i), w = weights_[i];
            double b;
            if (group_.empty()) {
                const double size = std::abs(a) - w;
                b = size > 0 ? std::copysign(size, a) : 0.0;
            } else {
                const double size = size_of_group(j);
                b = w == 0 ? a : size > w ? (1.0 - w / size) * a : 0.0;
            }
            b *= kappa;
            if (has_limits_) b = b < lower_[i] ? lower_[i] : b > upper_[i] ? upper_[i] : b;
            beta[at] = b;
        });
    }

    // A bound of the square root of the derivative of the mirror map over kappa, times v, in place.
    void root(const Index& index, const double* z, double* v) {
        if (group_.empty()) return;
        square_groups(index, z);
        for (const Size j : index) along_[group_[j]] = 0.0;
        each(index, [&](Size at, Size, Size j) { along_[group_[j]] += z[at] * v[at]; });
        each(index, [&](Size at, Size i, Size j) {
            if (is_limited_[group_[j]]) return;
            const double size = std::max(size_of_group(j), 1e-300), across = std::sqrt(1.0 - std::min(weights_[i] / size, 1.0));
            v[at] = across * v[at] + (1.0 - across) * z[at] / size * (along_[group_[j]] / size);
        });
    }

    // Extend a set of columns to whole groups.
    void complete_groups(Flags& columns) const {
        if (group_.empty()) return;
        Flags touched(squares_.size(), 0);
        for (Size j = 0; j < m; ++j)
            if (columns[j]) touched[group_[j]] = 1;
        for (Size j = 0; j < m; ++j) columns[j] = touched[group_[j]];
    }

   private:
    static constexpr int kBisections = 60;  // down to rounding

    // Calls work(position in arrays over the index, coordinate, column) for all coordinates of some columns.
    template <class Work>
    void each(const Index& index, Work work) const {
        const Size k = Size(index.size());
        for (Size l = 0; l < q; ++l)
            for (Size c = 0; c < k; ++c) work(l * k + c, l * m + index[c], index[c]);
    }

    double allowed(double z, Size i) const {
        if (!has_limits_) return z;
        if (lower_[i] == 0 && z < 0) z = 0;
        if (upper_[i] == 0 && z > 0) z = 0;
        return z;
    }

    void square_groups(const Index& index, const double* z) {
        if (group_.empty()) return;
        for (const Size j : index) squares_[group_[j]] = 0.0;
        each(index, [&](Size at, Size i, Size j) {
            const double a = allowed(z[at], i);
            squares_[group_[j]] += a * a;
        });
    }

    double size_of_group(Size j) const { return std::sqrt(squares_[group_[j]]); }

    // b = clip(z r / (r + w)) with r the norm of b, by bisection; see GroupPenalty.primal.
    void boxed_groups(const Index& index, const double* z, double kappa, double* beta) {
        const auto middle = [&](Size j) { return 0.5 * (low_[group_[j]] + high_[group_[j]]); };
        const auto coordinate = [&](Size at, Size i, Size j) {
            const double w = weights_[i], r = middle(j);
            const double share = w == 0 ? 1.0 : std::isfinite(w) && r > 0 ? r / (r + w) : 0.0;
            return std::clamp(share * allowed(z[at], i), lower_[i] / kappa, upper_[i] / kappa);
        };
        for (const Size j : index) {
            low_[group_[j]] = 0;
            high_[group_[j]] = std::max(size_of_group(j) - weights_[j], 0.0);
        }
        for (int round = 0; round < kBisections; ++round) {
            for (const Size j : index) squares_[group_[j]] = 0.0;
            each(index, [&](Size at, Size i, Size j) {
                const double b = coordinate(at, i, j);
                squares_[group_[j]] += b * b;
            });
            for (const Size j : index) {
                const Size g = group_[j];
                if (squares_[g] < 0) continue;  // another column of the group was here
                const double r = middle(j);
                (std::sqrt(squares_[g]) > r ? low_[g] : high_[g]) = r;
                squares_[g] = -1;
            }
        }
        each(index, [&](Size at, Size i, Size j) {
            beta[at] = std::clamp(kappa * coordinate(at, i, j), lower_[i], upper_[i]);
        });
    }

    std::vector<double> weights_, lower_, upper_;
    Index group_;
    bool has_limits_ = false, has_box_ = false;  // any limit; any limit other than 0
    std::vector<double> squares_, along_, low_, high_;  // of each group
    Flags is_limited_;  // groups with a limit, whose derivative is another
};

}  // namespace bregpath

// Gibbs sampling of Ising and Potts models, many chains side by side.
//
// Sites arrive sorted by colour: no two neighbours share one, so a colour is updated at once. States are stored site by
// site with the chains of a block next to each other; the loops over chains, and that over all (site, chain) pairs of a
// colour, have no branches and become vector instructions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernels.hpp"

namespace bregpath {

// exp(x) with a relative error below 1e-12, far less than a sampler could show. Clamped, so never 0, inf or nan.
inline double sampler_exp(double x) {
    constexpr double shifter = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits
    constexpr double c[] = {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                            1.0 / 24,      1.0 / 6,      1.0 / 2,     1.0,        1.0};
    x = x > -700.0 ? x : -700.0;
    x = x < 700.0 ? x : 700.0;
    const double shifted = x * 1.4426950408889634 + shifter;
    const double r = x - (shifted - shifter) * 0.6931471805599453;
    double y = c[0];
    for (int k = 1; k < 11; ++k) y = y * r + c[k];
    return y * std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) << 52) + (uint64_t{1023} << 52));
}

// SplitMix64: turns one seed into the seeds of all streams.
struct SplitMix {
    uint64_t state;
    uint64_t operator()() {
        uint64_t z = state += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
};

// Eight independent xoshiro256++ streams that advance together.
class Random {
   public:
    static constexpr Size kLanes = 8;

    explicit Random(SplitMix& seeds) {
        for (auto& word : s_)
            for (auto& lane : word) lane = seeds();
    }

    // Uniform numbers in the open interval (0, 1). Writes whole runs of kLanes: u has room for `count` rounded up.
    void fill(double* u, Size count) {
        for (Size i = 0; i < count; i += kLanes) {
#pragma omp simd
            for (Size k = 0; k < kLanes; ++k) {
                const uint64_t bits = std::rotl(s_[0][k] + s_[3][k], 23) + s_[0][k];
                const uint64_t t = s_[1][k] << 17;
                s_[2][k] ^= s_[0][k], s_[3][k] ^= s_[1][k], s_[1][k] ^= s_[2][k], s_[0][k] ^= s_[3][k];
                s_[2][k] ^= t;
                s_[3][k] = std::rotl(s_[3][k], 45);
                // 52 random bits behind the exponent of 1 give [1, 2); half a step more excludes 0.
                u[i + k] = std::bit_cast<double>((bits >> 12) | 0x3ff0000000000000) - (1.0 - 0x1p-53);
            }
        }
    }

   private:
    uint64_t s_[4][kLanes];
};

// Who is next to whom: neighbours of site j are sites[starts[j]] ... sites[starts[j + 1] - 1].
struct Graph {
    Size p;
    const int64_t* colours;  // (n_colours + 1): colour c holds sites colours[c] ... colours[c + 1] - 1
    Size n_colours;
    const int64_t* starts;
    const int32_t* sites;
};

inline Size rounded_up(Size count) { return (count + Random::kLanes - 1) / Random::kLanes * Random::kLanes; }

// P(x) ~ exp(sum_j a_j x_j / 2 + sum_{j<k} b_jk x_j x_k / 2), x in {-1, +1}: a block of chains.
class IsingBlock {
   public:
    using Code = int8_t;
    struct Model {
        Graph graph;
        const double* fields;     // (p)
        const double* couplings;  // one for each entry of graph.sites
    };

    IsingBlock(const Model& model, Size chains, SplitMix& seeds)
        : model_(model), chains_(chains), random_(seeds), state_(rounded_up(model.graph.p * chains)),
          eta_(kBuffer), uniform_(kBuffer) {
        random_.fill(state_.data(), model.graph.p * chains);
        for (double& x : state_) x = x < 0.5 ? -1.0 : 1.0;
    }

    void sweep() {
        const Graph& g = model_.graph;
        const Size at_once = std::max<Size>(1, kBuffer / chains_);
        for (Size c = 0; c < g.n_colours; ++c)
            for (Size first = g.colours[c]; first < g.colours[c + 1]; first += at_once)
                update(first, std::min<Size>(first + at_once, g.colours[c + 1]));
    }

    Code code(Size site, Size chain) const { return state_[site * chains_ + chain] > 0; }

   private:
    static constexpr Size kBuffer = 1024;  // (site, chain) pairs; at least as large as a block of chains

    void update(Size first, Size last) {
        const Graph& g = model_.graph;
        const Size m = chains_, count = (last - first) * m;
        for (Size j = first; j < last; ++j) {
            double* eta = eta_.data() + (j - first) * m;
            std::fill_n(eta, m, model_.fields[j]);
            for (int64_t e = g.starts[j]; e < g.starts[j + 1]; ++e) {
                const double b = model_.couplings[e];
                const double* x = state_.data() + g.sites[e] * m;
                for (Size i = 0; i < m; ++i) eta[i] += b * x[i];
            }
        }
        random_.fill(uniform_.data(), count);
        const double *eta = eta_.data(), *u = uniform_.data();
        double* x = state_.data() + first * m;
        // P(x_j = 1 | rest) = 1 / (1 + exp(-eta))
        for (Size i = 0; i < count; ++i) x[i] = u[i] * (1.0 + sampler_exp(-eta[i])) < 1.0 ? 1.0 : -1.0;
    }

    Model model_;
    Size chains_;
    Random random_;
    std::vector<double> state_, eta_, uniform_;
};

// P(x) ~ exp(sum_j a_{j; x_j} + sum_{j<k} b_jk[x_j, x_k]), x_j in 0 ... q_j - 1: a block of chains.
class PottsBlock {
   public:
    using Code = int32_t;
    struct Model {
        Graph graph;
        const int64_t* offsets;   // (p + 1): site j owns rows offsets[j] ... offsets[j + 1] - 1 of what follows
        const double* fields;     // (P)
        const double* couplings;  // (P, P), symmetric
    };

    PottsBlock(const Model& model, Size chains, SplitMix& seeds)
        : model_(model), chains_(chains), random_(seeds), state_(model.graph.p * chains),
          uniform_(rounded_up(chains)) {
        Size most = 0;
        for (Size j = 0; j < model.graph.p; ++j) {
            const Size q = states(j);
            most = std::max(most, q);
            random_.fill(uniform_.data(), chains);
            for (Size i = 0; i < chains; ++i) state_[j * chains + i] = Code(uniform_[i] * q);
        }
        eta_.resize(most * chains);
    }

    void sweep() {
        for (Size j = 0; j < model_.graph.p; ++j) update(j);
    }

    Code code(Size site, Size chain) const { return state_[site * chains_ + chain]; }

   private:
    Size states(Size j) const { return model_.offsets[j + 1] - model_.offsets[j]; }

    void update(Size j) {
        const Graph& g = model_.graph;
        const Size q = states(j), at = model_.offsets[j], size = model_.offsets[g.p];
        for (Size i = 0; i < chains_; ++i) std::copy_n(model_.fields + at, q, eta_.data() + i * q);
        for (int64_t e = g.starts[j]; e < g.starts[j + 1]; ++e) {
            const Code* x = state_.data() + g.sites[e] * chains_;
            const double* block = model_.couplings + model_.offsets[g.sites[e]] * size + at;  // b_kj, row by row
            for (Size i = 0; i < chains_; ++i) {
                const double* row = block + x[i] * size;
                double* eta = eta_.data() + i * q;
                for (Size l = 0; l < q; ++l) eta[l] += row[l];
            }
        }
        choose(state_.data() + j * chains_, q);
    }

    // x = l with probability exp(eta_l) / sum_k exp(eta_k), for every chain.
    void choose(Code* x, Size q) {
        for (Size i = 0; i < chains_; ++i) {
            double* eta = eta_.data() + i * q;
            const double largest = *std::max_element(eta, eta + q);
            for (Size l = 0; l < q; ++l) eta[l] -= largest;
        }
        for (Size i = 0; i < chains_ * q; ++i) eta_[i] = sampler_exp(eta_[i]);
        random_.fill(uniform_.data(), chains_);
        for (Size i = 0; i < chains_; ++i) {
            double* weight = eta_.data() + i * q;
            for (Size l = 1; l < q; ++l) weight[l] += weight[l - 1];
            const double reached = uniform_[i] * weight[q - 1];
            Code state = 0;
            for (Size l = 0; l + 1 < q; ++l) state += weight[l] <= reached;
            x[i] = state;
        }
    }

    Model model_;
    Size chains_;
    Random random_;
    std::vector<Code> state_;
    std::vector<double> eta_, uniform_;
};

struct Plan {
    Size n, chains, burn_in, thin;
    uint64_t seed;
};

// Codes of states (n, p); row d * chains + c is draw d of chain c. `pause` is called now and then.
template <class Block, class Pause>
void sample(const typename Block::Model& model, const Plan& plan, typename Block::Code* out, Pause pause) {
    constexpr Size kChains = 64, kPauseEvery = Size{1} << 25;  // chains of a block, updates between pauses
    const Size p = model.graph.p, blocks = (plan.chains + kChains - 1) / kChains;
    SplitMix seeds{plan.seed};
    Size updates = 0;
    for (Size b = 0; b < blocks; ++b) {
        const Size first = plan.chains * b / blocks, last = plan.chains * (b + 1) / blocks;
        Block block(model, last - first, seeds);
        for (Size row = first; row < plan.n; row += plan.chains) {
            const Size sweeps = row == first ? plan.burn_in : plan.thin;
            for (Size s = 0; s < sweeps; ++s) {
                block.sweep();
                if ((updates += p * (last - first)) > kPauseEvery) updates = 0, pause();
            }
            for (Size c = 0; c < last - first && row + c < plan.n; ++c)
                for (Size j = 0; j < p; ++j) out[(row + c) * p + j] = block.code(j, c);
        }
    }
}

}  // namespace bregpath

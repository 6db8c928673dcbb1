// Gibbs sampling of Ising and Potts models, many chains side by side, alone or each with hotter replicas.
//
// Sites arrive sorted by colour: no two neighbours share one, so a colour is updated at once. States are stored site by
// site with the chains of a block next to each other; the loops over chains, and that over all (site, chain) pairs of a
// colour, have no branches and become vector instructions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels.hpp"
#include "scalars.hpp"

namespace bregpath {

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

// P(x) ~ exp(beta w(x)), w(x) = sum_j a_j x_j / 2 + sum_{j<k} b_jk x_j x_k / 2, x in {-1, +1}: a block of chains, each
// with its own inverse temperature beta (at first 1).
class IsingBlock {
   public:
    using Code = int8_t;
    struct Model {
        Graph graph;
        const double* fields;     // (p)
        const double* couplings;  // one for each entry of graph.sites
    };

    static Size states(const Model&, Size) { return 2; }

    IsingBlock(const Model& model, Size chains, SplitMix& seeds)
        : model_(model), chains_(chains), random_(seeds), state_(rounded_up(model.graph.p * chains)),
          beta_(chains, 1.0), eta_(kBuffer), uniform_(kBuffer) {
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

    void set_beta(Size chain, double beta) {
        beta_[chain] = beta;
        is_tempered_ |= beta != 1.0;
    }
    Code code(Size site, Size chain) const { return state_[site * chains_ + chain] > 0; }
    void set(Size site, Size chain, Code code) { state_[site * chains_ + chain] = code ? 1.0 : -1.0; }

    // w of every chain
    void log_weights(double* w) {
        const Size m = chains_;
        std::fill_n(w, m, 0.0);
        for (Size j = 0; j < model_.graph.p; ++j) {
            predict(j, eta_.data(), 0.5);  // every pair is met twice
            const double* x = state_.data() + j * m;
            for (Size i = 0; i < m; ++i) w[i] += 0.5 * x[i] * eta_[i];
        }
    }

   private:
    static constexpr Size kBuffer = 1024;  // (site, chain) pairs; at least as large as a block of chains

    void update(Size first, Size last) {
        const Size m = chains_, count = (last - first) * m;
        for (Size j = first; j < last; ++j) {
            double* eta = eta_.data() + (j - first) * m;
            predict(j, eta, 1.0);
            if (is_tempered_)
                for (Size i = 0; i < m; ++i) eta[i] *= beta_[i];
        }
        random_.fill(uniform_.data(), count);
        const double *eta = eta_.data(), *u = uniform_.data();
        double* x = state_.data() + first * m;
        // P(x_j = 1 | rest) = 1 / (1 + exp(-eta))
        for (Size i = 0; i < count; ++i) x[i] = u[i] * (1.0 + fast_exp(-eta[i])) < 1.0 ? 1.0 : -1.0;
    }

    // a_j + share * sum_k b_jk x_k for every chain
    void predict(Size j, double* eta, double share) const {
        const Graph& g = model_.graph;
        std::fill_n(eta, chains_, model_.fields[j]);
        for (int64_t e = g.starts[j]; e < g.starts[j + 1]; ++e) {
            const double b = share * model_.couplings[e];
            const double* x = state_.data() + g.sites[e] * chains_;
            for (Size i = 0; i < chains_; ++i) eta[i] += b * x[i];
        }
    }

    Model model_;
    Size chains_;
    Random random_;
    bool is_tempered_ = false;
    std::vector<double> state_, beta_, eta_, uniform_;
};

// The same for w(x) = sum_j a_{j; x_j} + sum_{j<k} b_jk[x_j, x_k], x_j in 0 ... q_j - 1.
class PottsBlock {
   public:
    using Code = int32_t;
    struct Model {
        Graph graph;
        const int64_t* offsets;   // (p + 1): site j owns rows offsets[j] ... offsets[j + 1] - 1 of what follows
        const double* fields;     // (P)
        const double* couplings;  // (P, P), symmetric
    };

    static Size states(const Model& model, Size j) { return model.offsets[j + 1] - model.offsets[j]; }

    PottsBlock(const Model& model, Size chains, SplitMix& seeds)
        : model_(model), chains_(chains), random_(seeds), state_(model.graph.p * chains),
          beta_(chains, 1.0), uniform_(rounded_up(chains)) {
        Size most = 0;
        for (Size j = 0; j < model.graph.p; ++j) {
            const Size q = states(model_, j);
            most = std::max(most, q);
            random_.fill(uniform_.data(), chains);
            for (Size i = 0; i < chains; ++i) state_[j * chains + i] = Code(uniform_[i] * q);
        }
        eta_.resize(most * chains);
    }

    void sweep() {
        for (Size j = 0; j < model_.graph.p; ++j) update(j);
    }

    void set_beta(Size chain, double beta) { beta_[chain] = beta; }
    Code code(Size site, Size chain) const { return state_[site * chains_ + chain]; }
    void set(Size site, Size chain, Code code) { state_[site * chains_ + chain] = code; }

    void log_weights(double* w) {
        std::fill_n(w, chains_, 0.0);
        for (Size j = 0; j < model_.graph.p; ++j) {
            const Size q = states(model_, j);
            const double* field = model_.fields + model_.offsets[j];
            predict(j);
            for (Size i = 0; i < chains_; ++i) {  // every pair is met twice
                const Code x = state_[j * chains_ + i];
                w[i] += 0.5 * (field[x] + eta_[i * q + x]);
            }
        }
    }

   private:
    void update(Size j) {
        predict(j);
        choose(state_.data() + j * chains_, states(model_, j));
    }

    // eta_[i, l] = a_{j; l} + sum_k b_jk[l, x_k] for every chain i
    void predict(Size j) {
        const Graph& g = model_.graph;
        const Size q = states(model_, j), at = model_.offsets[j], size = model_.offsets[g.p];
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
    }

    // x = l with probability exp(beta eta_l) / sum_k exp(beta eta_k), for every chain.
    void choose(Code* x, Size q) {
        for (Size i = 0; i < chains_; ++i) {
            double* eta = eta_.data() + i * q;
            const double largest = *std::max_element(eta, eta + q);
            for (Size l = 0; l < q; ++l) eta[l] = beta_[i] * (eta[l] - largest);
        }
        for (Size i = 0; i < chains_ * q; ++i) eta_[i] = fast_exp(eta_[i]);
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
    std::vector<double> beta_, eta_, uniform_;
};

// What is drawn, and what is told of it. Arrays may be absent (null), except `betas`.
template <class Code>
struct Plan {
    Size n, chains, burn_in, thin;
    uint64_t seed;
    const double* betas;  // (n_betas) inverse temperatures of a chain's replicas, increasing; the last gives the rows
    Size n_betas;
    Code* out;          // (n, p); row d * chains + c is draw d of chain c
    Code* halfway;      // (chains, p): rows after half of the burn-in
    const Code* start;  // (chains, n_betas, p): where replicas start; at random if absent
    Code* ends;         // (chains, n_betas, p): and where they end
    double* rejected;   // (n_betas - 1): grows by the probability of refusal at every trial of a swap of neighbours
    int64_t* trips;     // (chains): how often a replica went from the first temperature to the last
};

// Chains with replicas at all temperatures. After a sweep neighbours in temperature trade places, those with an even
// lower one and those with an odd one in turn: so a replica that was accepted travels on in its direction.
template <class Block>
class Replicas {
   public:
    using Code = typename Block::Code;

    Replicas(const typename Block::Model& model, const Plan<Code>& plan, Size first, Size last, SplitMix& seeds)
        : p_(model.graph.p), levels_(plan.n_betas), first_(first), chains_(last - first), plan_(plan),
          block_(model, chains_ * levels_, seeds), at_(chains_ * levels_), was_hot_(at_.size()), weight_(at_.size()),
          random_{levels_ > 1 ? seeds() : 0} {
        for (Size i = 0; i < Size(at_.size()); ++i) {
            at_[i] = i;
            block_.set_beta(i, plan.betas[i % levels_]);
            if (plan.start)
                for (Size j = 0; j < p_; ++j) block_.set(j, i, plan.start[(first_ * levels_ + i) * p_ + j]);
        }
    }

    void step() {
        block_.sweep();
        if (levels_ > 1) exchange();
    }

    void write_row(Size chain, Code* row) const { write(at_[(chain + 1) * levels_ - 1], row); }

    void write_ends() const {
        for (Size i = 0; i < Size(at_.size()); ++i) write(at_[i], plan_.ends + (first_ * levels_ + i) * p_);
    }

   private:
    void write(Size replica, Code* row) const {
        for (Size j = 0; j < p_; ++j) row[j] = block_.code(j, replica);
    }

    void exchange() {
        block_.log_weights(weight_.data());
        for (Size c = 0; c < chains_; ++c) {
            Size* at = at_.data() + c * levels_;  // the replica at each temperature
            for (Size l = odd_; l + 1 < levels_; l += 2) {
                const double gain = (plan_.betas[l] - plan_.betas[l + 1]) * (weight_[at[l + 1]] - weight_[at[l]]);
                const double accepted = gain < 0.0 ? fast_exp(gain) : 1.0;
                if (plan_.rejected) plan_.rejected[l] += 1.0 - accepted;
                if (double(random_() >> 11) * 0x1p-53 >= accepted) continue;
                std::swap(at[l], at[l + 1]);
                for (Size k : {l, l + 1}) block_.set_beta(at[k], plan_.betas[k]);
            }
            was_hot_[at[0]] = true;
            if (was_hot_[at[levels_ - 1]]) {
                was_hot_[at[levels_ - 1]] = false;
                if (plan_.trips) ++plan_.trips[first_ + c];
            }
        }
        odd_ = 1 - odd_;
    }

    Size p_, levels_, first_, chains_, odd_ = 0;
    const Plan<Code>& plan_;
    Block block_;
    std::vector<Size> at_;
    std::vector<char> was_hot_;
    std::vector<double> weight_;
    SplitMix random_;
};

// `pause` is called now and then.
template <class Block, class Pause>
void sample(const typename Block::Model& model, const Plan<typename Block::Code>& plan, Pause pause) {
    constexpr Size kReplicas = 64, kPauseEvery = Size{1} << 25;  // replicas of a block, updates between pauses
    const Size p = model.graph.p, at_once = std::max<Size>(1, kReplicas / plan.n_betas);
    const Size blocks = (plan.chains + at_once - 1) / at_once;
    SplitMix seeds{plan.seed};
    Size updates = 0;
    for (Size b = 0; b < blocks; ++b) {
        const Size first = plan.chains * b / blocks, last = plan.chains * (b + 1) / blocks;
        Replicas<Block> replicas(model, plan, first, last, seeds);
        const auto advance = [&](Size sweeps) {
            for (Size s = 0; s < sweeps; ++s) {
                replicas.step();
                if ((updates += p * (last - first) * plan.n_betas) > kPauseEvery) updates = 0, pause();
            }
        };
        advance(plan.burn_in / 2);
        if (plan.halfway)
            for (Size c = first; c < last; ++c) replicas.write_row(c - first, plan.halfway + c * p);
        advance(plan.burn_in - plan.burn_in / 2);
        for (Size row = first; row < plan.n; row += plan.chains) {
            if (row > first) advance(plan.thin);
            for (Size c = 0; c < last - first && row + c < plan.n; ++c)
                replicas.write_row(c, plan.out + (row + c) * p);
        }
        if (plan.ends) replicas.write_ends();
    }
}

}  // namespace bregpath

// The determinant and the inverse of a positive definite matrix of which few entries are not zero. Its nodes, the rows, are
// eliminated one by one, that of the fewest neighbours first, as long as these are few; the core that is left is full,
// and swept. Without few neighbours anywhere it is the whole matrix.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "aligned.hpp"
#include "columns.hpp"
#include "vectors.hpp"

namespace bregpath {

// The order of elimination of one pattern of entries, and matrices in it: entry (i, j), i <= j, lies at i * p + j.
class Elimination {
   public:
    using Numbers = std::vector<int32_t>;

    // Of p nodes, of which the two ends of each edge are joined.
    Elimination(Size p, const Numbers& one_end, const Numbers& other_end) : p(p), position_(p, -1), starts_{0} {
        Graph graph(p, one_end, other_end);
        Numbers left(p);
        for (Size j = 0; j < p; ++j) left[j] = int32_t(j);
        for (Size core = p; core > 0; --core) {
            size_t fewest = 0;
            for (size_t i = 1; i < left.size(); ++i)
                if (graph.degree[left[i]] < graph.degree[left[fewest]]) fewest = i;
            const int32_t node = left[fewest];
            if (double(graph.degree[node]) > kFew * double(core - 1)) break;
            position_[node] = eliminated_++;
            graph.eliminate(node, neighbours_);
            starts_.push_back(int32_t(neighbours_.size()));
            left[fewest] = left.back(), left.pop_back();
        }
        int32_t next = eliminated_;
        for (int32_t& place : position_) place = place < 0 ? next++ : place;
        for (int32_t& node : neighbours_) node = position_[node];
        sort_neighbours();
    }

    const Size p;

    // Where the entry of two nodes lies.
    Size place(Size j, Size k) const {
        const auto [first, second] = std::minmax(position_[j], position_[k]);
        return first * p + second;
    }

    // Zeros wherever the matrix or its factor may have others.
    void clear(double* matrix) const {
        for (Size i = 0; i < eliminated_; ++i)
            for (Size a = starts_[i]; a < starts_[i + 1]; ++a) matrix[i * p + neighbours_[a]] = 0;
        for (Size i = eliminated_; i < p; ++i) std::fill(matrix + i * p + i, matrix + (i + 1) * p, 0.0);
    }

    // What the work needs room for.
    struct Scratch {
        Aligned core;
        std::vector<Column> columns;
        std::vector<double> shares;
    };

    // The logarithm of the determinant, -infinity where a matrix is not positive definite. The matrix is lost.
    double log_determinant(const Kernels* kernels, double* matrix, Scratch& scratch) const {
        return eliminate(kernels, matrix, false, scratch);
    }

    // The same, and the inverse W in the place of the matrix. Row i of it follows from later ones, W_ij = -sum_a L_ai W_aj,
    // j > i, summed over the neighbours; so of those that are neighbours the part before the diagonal is filled as well.
    double invert(const Kernels* kernels, double* matrix, Scratch& scratch) const {
        const double log_determinant = eliminate(kernels, matrix, true, scratch);
        if (eliminated_ == 0 || log_determinant == -kInfinity) return log_determinant;
        for (Size i = eliminated_; i < p; ++i) mirror(matrix, i);
        for (Size i = eliminated_ - 1; i >= 0; --i) {
            double* row = matrix + i * p;
            scratch.columns.clear(), scratch.shares.clear();
            for (Size a = starts_[i]; a < starts_[i + 1]; ++a) {
                scratch.columns.push_back({matrix + neighbours_[a] * p + i + 1});
                scratch.shares.push_back(-row[neighbours_[a]]);
            }
            if (i + 1 < p) multiply(kernels, scratch.columns, p - i - 1, 1, scratch.shares.data(), row + i + 1);
            row[i] = 1 / row[i];
            for (Size a = starts_[i]; a < starts_[i + 1]; ++a)
                row[i] += scratch.shares[a - starts_[i]] * row[neighbours_[a]];
            mirror(matrix, i);
        }
        return log_determinant;
    }

   private:
    static constexpr double kFew = 0.4;  // of the nodes that are left: so many neighbours cost as much as a sweep does

    // L D L' of the nodes that are eliminated, in the place of a matrix, and the core swept; the logarithm of the determinant.
    double eliminate(const Kernels* kernels, double* matrix, bool inverse, Scratch& scratch) const {
        double log_determinant = 0;
        for (Size i = 0; i < eliminated_; ++i) {
            double* row = matrix + i * p;
            const int32_t *begin = neighbours_.data() + starts_[i], *end = neighbours_.data() + starts_[i + 1];
            if (!(row[i] > 0)) return -kInfinity;
            log_determinant += std::log(row[i]);
            for (const int32_t* a = begin; a < end; ++a) {
                const double share = row[*a] / row[i];
                double* to = matrix + *a * p;
                for (const int32_t* b = a; b < end; ++b) to[*b] -= share * row[*b];
                row[*a] = share;  // those before it are not read any more
            }
        }
        const Size core = p - eliminated_;
        scratch.core.resize(sweep_room(core));
        return log_determinant + kernels->sweep(core, matrix + eliminated_ * (p + 1), p, inverse, scratch.core.data());
    }

    // Who is joined to whom among the nodes that are left, as bits.
    struct Graph {
        Graph(Size p, const Numbers& one_end, const Numbers& other_end)
            : words((p + 63) / 64), bits(p * words), degree(p, 0) {
            for (size_t e = 0; e < one_end.size(); ++e) {
                set(one_end[e], other_end[e]), set(other_end[e], one_end[e]);
                ++degree[one_end[e]], ++degree[other_end[e]];
            }
        }

        void set(Size j, Size k) { bits[j * words + k / 64] |= uint64_t{1} << (k % 64); }
        void unset(Size j, Size k) { bits[j * words + k / 64] &= ~(uint64_t{1} << (k % 64)); }

        // Take a node out, which joins all of its neighbours, and append these.
        void eliminate(int32_t node, Numbers& neighbours) {
            const uint64_t* own = &bits[node * words];
            const size_t first = neighbours.size();
            for (Size w = 0; w < words; ++w)
                for (uint64_t rest = own[w]; rest; rest &= rest - 1)
                    neighbours.push_back(int32_t(64 * w + std::countr_zero(rest)));
            for (size_t a = first; a < neighbours.size(); ++a) {
                const int32_t other = neighbours[a];
                uint64_t* theirs = &bits[other * words];
                for (Size w = 0; w < words; ++w) theirs[w] |= own[w];
                unset(other, other), unset(other, node);
                degree[other] = 0;
                for (Size w = 0; w < words; ++w) degree[other] += std::popcount(theirs[w]);
            }
        }

        Size words;
        std::vector<uint64_t> bits;
        Numbers degree;
    };

    void sort_neighbours() {
        for (Size i = 0; i < eliminated_; ++i)
            std::sort(neighbours_.begin() + starts_[i], neighbours_.begin() + starts_[i + 1]);
        sources_ = neighbours_;
        std::sort(sources_.begin(), sources_.end());
        sources_.erase(std::unique(sources_.begin(), sources_.end()), sources_.end());
    }

    // Entries of row i into the rows after it that others will be made of.
    void mirror(double* matrix, Size i) const {
        const double* row = matrix + i * p;
        for (auto j = std::upper_bound(sources_.begin(), sources_.end(), int32_t(i)); j != sources_.end(); ++j)
            matrix[*j * p + i] = row[*j];
    }

    int32_t eliminated_ = 0;
    Numbers position_;              // of each node; the eliminated ones come first
    Numbers starts_, neighbours_;   // positions of the neighbours that each eliminated node had, in order
    Numbers sources_;               // positions that are neighbours of eliminated ones
};

}  // namespace bregpath

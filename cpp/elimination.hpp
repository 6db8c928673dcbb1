// The Cholesky factor and the inverse of a symmetric matrix of which few entries are not zero. Its nodes, the rows, are
// eliminated one by one, that of the fewest neighbours first, as long as these are few; the core that is left is full,
// and LAPACK's. Without few neighbours anywhere it is the whole matrix.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "columns.hpp"
#include "lapack.hpp"

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

    // L D L' of the nodes that are eliminated and L L' of the core, in the place of a matrix; false where it is not
    // positive definite.
    bool factor(const Lapack& lapack, double* matrix) const {
        for (Size i = 0; i < eliminated_; ++i) {
            double* row = matrix + i * p;
            const int32_t *begin = neighbours_.data() + starts_[i], *end = neighbours_.data() + starts_[i + 1];
            if (!(row[i] > 0)) return false;
            for (const int32_t* a = begin; a < end; ++a) {
                const double share = row[*a] / row[i];
                double* to = matrix + *a * p;
                for (const int32_t* b = a; b < end; ++b) to[*b] -= share * row[*b];
                row[*a] = share;  // those before it are not read any more
            }
        }
        return eliminated_ == p || lapack.factor(core_size(), core(matrix), p);
    }

    // Of the matrix, by its factor.
    double log_determinant(const double* factor) const {
        double of_eliminated = 0, of_core = 0;
        for (Size i = 0; i < eliminated_; ++i) of_eliminated += std::log(factor[i * (p + 1)]);
        for (Size i = eliminated_; i < p; ++i) of_core += std::log(factor[i * (p + 1)]);
        return of_eliminated + 2 * of_core;
    }

    // The inverse W in the place of the factor. Row i of it follows from later ones, W_ij = -sum_a L_ai W_aj, j > i,
    // summed over the neighbours; so of those that are neighbours the part before the diagonal is filled as well.
    bool invert(Lapack& lapack, const Kernels* kernels, double* factor, std::vector<Column>& columns,
                std::vector<double>& shares) const {
        if (eliminated_ < p && !lapack.invert(core_size(), core(factor), p)) return false;
        if (eliminated_ == 0) return true;
        for (Size i = eliminated_; i < p; ++i) mirror(factor, i);
        for (Size i = eliminated_ - 1; i >= 0; --i) {
            double* row = factor + i * p;
            columns.clear(), shares.clear();
            for (Size a = starts_[i]; a < starts_[i + 1]; ++a) {
                columns.push_back({factor + neighbours_[a] * p + i + 1});
                shares.push_back(-row[neighbours_[a]]);
            }
            if (i + 1 < p) multiply(kernels, columns, p - i - 1, 1, shares.data(), row + i + 1);
            row[i] = 1 / row[i];
            for (Size a = starts_[i]; a < starts_[i + 1]; ++a) row[i] += shares[a - starts_[i]] * row[neighbours_[a]];
            mirror(factor, i);
        }
        return true;
    }

   private:
    static constexpr double kFew = 0.4;  // of the nodes that are left: so many neighbours cost as much as LAPACK does

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

    Size core_size() const { return p - eliminated_; }
    double* core(double* matrix) const { return matrix + eliminated_ * (p + 1); }

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

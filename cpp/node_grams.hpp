// The Hessian of a graph of spins: a matrix X'H X a node, over a constant and those of its neighbours that ever moved.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "compact_gram.hpp"
#include "rows.hpp"

namespace bregpath {

class NodeGrams {
   public:
    NodeGrams(const Kernels* kernels, const Columns& features, const Places& places, Size nodes)
        : k_(kernels), n_(features.n), constant_(features.k), stride_((n_ + 7) & ~Size{7}), places_(places),
          grams_(nodes, CompactGram(features.k + 1)), items_((features.k + 1) * stride_, 1.0) {
        for (Size j = 0; j < features.k; ++j) std::copy_n(features.at[j].values, n_, &items_[j * stride_]);
        start_.resize(nodes + 1), h_.resize(nodes * stride_);
    }

    // Another curvature (nodes, stride), which is to be set; nothing that was made of the last one is valid.
    Aligned& forget() {
        for (CompactGram& gram : grams_) gram.forget();
        is_laid_out_ = false;
        return h_;
    }
    Size stride() const { return stride_; }

    void product(const Point& v, double* out) {
        if (!is_laid_out_ || v.columns != columns_) lay_out(v.columns);
        const Size places = places_.places, nodes = Size(grams_.size());
        for (Size d = 0; d < nodes; ++d) v_[start_[d]] = v.alpha[d];
        for (size_t i = 0; i < slot_.size(); ++i) v_[slot_[i]] = v.beta[Size(i) / places];
        for (Size d = 0; d < nodes; ++d) {
            const CompactGram& gram = grams_[d];
            const Size first = start_[d], size = start_[d + 1] - first;
            k_->symmetric_product(size, gram.matrix(), gram.stride(), &v_[first], &g_[first]);
        }
        for (size_t c = 0; c < columns_.size(); ++c) {
            out[c] = 0;
            for (Size i = 0; i < places; ++i) out[c] += g_[slot_[Size(c) * places + i]];
        }
        for (Size d = 0; d < nodes; ++d) out[columns_.size() + d] = g_[start_[d]];
    }

   private:
    // Where the coefficients of some columns lie among those of all matrices; what these lack of them is filled in.
    void lay_out(const Index& columns) {
        const Size places = places_.places;
        columns_ = columns, slot_.resize(columns.size() * places), is_laid_out_ = true;
        std::vector<Size> known;
        for (CompactGram& gram : grams_) {
            known.push_back(Size(gram.used().size()));
            gram.add(std::initializer_list<Size>{constant_});
        }
        for (const Size j : columns)
            for (Size i = j * places; i < (j + 1) * places; ++i)
                grams_[places_.target[i]].add(std::initializer_list<Size>{places_.source[i]});
        for (size_t d = 0; d < grams_.size(); ++d) {
            fill(Size(d), known[d]);
            start_[d + 1] = start_[d] + ((Size(grams_[d].used().size()) + 7) & ~Size{7});
        }
        v_.assign(start_.back(), 0.0), g_.resize(start_.back());
        Size* slot = slot_.data();
        for (const Size j : columns)
            for (Size i = j * places; i < (j + 1) * places; ++i)
                *slot++ = start_[places_.target[i]] + grams_[places_.target[i]].position(places_.source[i]);
    }

    // Entries of the items from `known` on: a few at a time, against all that came before.
    void fill(Size d, Size known) {
        constexpr Size kTogether = 4;  // share what is read; more would make much of what is above the diagonal, too
        CompactGram& gram = grams_[d];
        const std::vector<int32_t>& used = gram.used();
        for (Size end; known < Size(used.size()); known = end) {
            end = std::min(known + kTogether, Size(used.size()));
            weighted_.resize((end - known) * stride_), vectors_.clear(), chosen_.clear();
            for (Size c = known; c < end; ++c) {
                double* weighted = &weighted_[(c - known) * stride_];
                k_->weigh(n_, &h_[d * stride_], &items_[used[c] * stride_], weighted);
                vectors_.push_back(weighted);
            }
            for (Size i = 0; i < end; ++i) chosen_.push_back({&items_[used[i] * stride_]});
            products_.resize(end * (end - known));
            k_->dots({n_, end, chosen_.data(), true}, vectors_.data(), end - known, products_.data());
            for (Size c = known; c < end; ++c)
                for (Size i = 0; i < end; ++i) gram.set(c, i, products_[(c - known) * end + i]);
        }
    }

    const Kernels* k_;
    const Size n_, constant_, stride_;  // the constant: an item after all features, and the first of every matrix
    const Places& places_;
    std::vector<CompactGram> grams_;  // of each node
    Index columns_, slot_, start_;    // of v; of each of their places among all coefficients; of each node there
    bool is_laid_out_ = false;
    Aligned v_, g_, items_, h_, weighted_;  // items: features and the constant, `stride` apart
    std::vector<double> products_;
    std::vector<const double*> vectors_;
    std::vector<Column> chosen_;
};

}  // namespace bregpath

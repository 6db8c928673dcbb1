// Passes over all columns where they lie: what is asked of a store, and the proof that columns at rest stay there, see
// flow/screening.py.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "arguments.hpp"
#include "columns.hpp"

namespace {

using namespace bregpath;

const Kernels* kernels = nullptr;  // chosen once, when the module is loaded
constexpr Size kTogether = 16384;  // columns, whose addresses are gathered at a time
constexpr Size kRunNumbers = 65536, kMinRun = 64, kMaxRun = 4096;  // of a run of rows of all columns, and its rows

// All columns of a design where they lie.
class Store {
   public:
    Store(Size n, nb::dict numbers) : numbers_("the store", std::move(numbers)), n_(n) {
        if (numbers_.has("dense")) {
            p_ = numbers_.length("dense", 1);
            dense_ = numbers_.array<const double, nb::f_contig>("dense", {n, p_});
        } else {
            const Size stored = numbers_.length("values");
            p_ = numbers_.length("indptr") - 1;
            values_ = numbers_.numbers("values", {stored});
            rows_ = numbers_.array<const int32_t>("indices", {stored});
            ends_ = numbers_.array<const int64_t>("indptr", {p_ + 1});
            require(std::all_of(rows_, rows_ + stored, [n](int32_t i) { return i >= 0 && i < n; }),
                    "a row of a sparse store is out of range");
            require(p_ >= 0 && ends_[0] >= 0 && ends_[p_] <= stored && std::is_sorted(ends_, ends_ + p_ + 1),
                    "`indptr` is out of range");
        }
        if (numbers_.has("scale")) center_ = numbers_.numbers("center", {p_}), scale_ = numbers_.numbers("scale", {p_});
    }

    // Products of columns, all of them unless told which, with vectors of n numbers.
    void products(nb::dict arrays) const {
        const Named from("the products", arrays);
        const bool some = from.has("columns");
        const Size b = from.length("vectors"), k = some ? from.length("columns") : p_;
        const int64_t* columns = some ? from.array<const int64_t>("columns", {k}) : nullptr;
        const double* vectors = from.numbers("vectors", {b, n_});
        double* out = from.array<double>("out", {b, k});
        require(!some || std::all_of(columns, columns + k, [this](int64_t j) { return j >= 0 && j < p_; }),
                "a column is out of range");
        nb::gil_scoped_release nogil;
        std::vector<const double*> each;
        for (Size l = 0; l < b; ++l) each.push_back(vectors + l * n_);
        std::vector<double> sums(b, 0.0), part;
        const bool shifts = dense_ && scale_;  // sparse columns are centred by the kernel
        if (shifts) kernels->totals(n_, b, vectors, sums.data());
        ManyDots dots;
        std::vector<Column> at;
        for (Size first = 0; first < k; first += kTogether) {
            const Size count = std::min(kTogether, k - first);
            at.clear();
            for (Size c = first; c < first + count; ++c) at.push_back(column(some ? columns[c] : c));
            part.resize(b * count);
            dots.of(kernels, {n_, count, at.data(), dense_ != nullptr}, each, part.data());
            for (Size l = 0; l < b; ++l)
                for (Size c = 0; c < count; ++c) {
                    const Size j = some ? columns[first + c] : first + c;
                    const double dot = part[l * count + c];
                    out[l * k + first + c] = shifts ? (dot - sums[l] * center_[j]) / scale_[j] : dot;
                }
        }
    }

    // Predictors of all rows, alpha + X beta, of some columns and several sets of coefficients.
    void predict(nb::dict arrays) const {
        const Named from("the predictors", arrays);
        const Size k = from.length("columns");
        const int64_t* columns = from.array<const int64_t>("columns", {k});
        Data plain{};
        plain.q = from.length("alpha");
        const double *alpha = from.numbers("alpha", {plain.q}), *beta = from.numbers("beta", {plain.q, k});
        double* out = from.array<double>("out", {plain.q, n_});
        require(std::all_of(columns, columns + k, [this](int64_t j) { return j >= 0 && j < p_; }), "a column is out of range");
        nb::gil_scoped_release nogil;
        std::vector<Column> at;
        for (Size c = 0; c < k; ++c) at.push_back(column(columns[c]));
        kernels->predict({n_, k, at.data(), dense_ != nullptr}, plain, alpha, beta, out);
    }

    // Means and variances; see stores/dense.py and stores/sparse.py.
    void scan(nb::dict arrays) const {
        const Named from("the scan", arrays);
        const double* w = from.numbers("w", {n_});
        double *mean = from.array<double>("mean", {p_}), *variance = from.array<double>("variance", {p_});
        nb::gil_scoped_release nogil;
        if (!dense_) return scan_sparse(w, mean, variance);
        for (Size j = 0; j < p_; ++j) kernels->spread(n_, dense_ + j * n_, w, mean + j, variance + j);
    }

    // Weighted sums of products of columns, less a shift, with each other, with ones and with y, over all rows unless told which, in
    // order, added to one half of `out`, which has room for a multiple of four of them; the other half is made the same.
    void moments(nb::dict arrays) const {
        const Named from("the moments", arrays);
        const bool some = from.has("rows");
        const Size n = some ? from.length("rows") : n_, k = (p_ + 2 + 7) & ~Size{7};
        const int64_t* chosen = some ? from.array<const int64_t>("rows", {n}) : nullptr;
        const double *w = from.numbers("w", {n}), *y = from.numbers("y", {n}), *shift = from.numbers("shift", {p_});
        double* out = from.array<double>("out", {k, k});
        require(!some || std::all_of(chosen, chosen + n, [this](int64_t i) { return i >= 0 && i < n_; }), "a row is out of range");
        require(!some || dense_ || std::is_sorted(chosen, chosen + n), "rows of sparse columns are not in order");
        nb::gil_scoped_release nogil;
        const Size rows = std::min(std::clamp(kRunNumbers / k, kMinRun, kMaxRun) & ~Size{7}, (n + 7) & ~Size{7});  // whole vectors
        const std::vector<double> ones(rows, 1.0);
        std::vector<double> root(n);
        // Nobody sets this room to zero first: it is as large as what is summed up where rows are few.
        const auto run = std::make_unique_for_overwrite<double[]>(k * rows);
        const auto gathered = std::make_unique_for_overwrite<double[]>(some || !dense_ ? p_ * rows : 0);
        for (Size i = 0; i < n; ++i) root[i] = std::sqrt(w[i]);
        std::vector<Column> at(k);
        at[p_] = {ones.data()};
        for (Size j = 0; j < p_; ++j) {
            at[j].scale = scale_ ? scale_[j] : 1.0;
            at[j].center = (scale_ ? center_[j] : 0.0) + shift[j] * at[j].scale;
        }
        SparseRuns runs(*this, dense_ ? 0 : p_, dense_ ? nullptr : chosen, n);
        for (Size i = 0; i < n; i += rows) {
            const Size m = std::min(rows, n - i);
            for (Size j = 0; j < p_; ++j) {
                double* to = gathered.get() + j * rows;
                at[j].values = some || !dense_ ? to : dense_ + j * n_ + i;
                if (!dense_) runs.fill(j, i, m, to);
                for (Size e = 0; some && dense_ && e < m; ++e) to[e] = dense_[j * n_ + chosen[i + e]];
            }
            for (Size j = p_ + 1; j < k; ++j) at[j].values = y + i;
            kernels->gram({m, k, at.data(), true}, root.data() + i, run.get(), rows, out);
        }
        for (Size l = 0; l < k; ++l)
            for (Size c = 0; c < l; ++c) out[l * k + c] = out[c * k + l];
    }

   private:
    // Sparse columns of which one run of rows after the other is asked for: all rows, or those that are chosen, in order.
    class SparseRuns {
       public:
        SparseRuns(const Store& of, Size columns, const int64_t* chosen, Size n)
            : of_(of), chosen_(chosen), n_(n), next_(of.ends_, of.ends_ + columns), place_(chosen ? of.n_ : 0, -1) {
            for (Size e = 0; chosen && e < n; ++e) place_[chosen[e]] = e;
        }

        void fill(Size j, Size first, Size m, double* to) {
            const Size beyond = first + m == n_ ? of_.n_ : chosen_ ? chosen_[first + m] : first + m;
            std::fill_n(to, m, 0.0);
            for (Size& e = next_[j]; e < of_.ends_[j + 1] && of_.rows_[e] < beyond; ++e) {
                const Size place = (chosen_ ? place_[of_.rows_[e]] : of_.rows_[e]) - first;
                if (place >= 0) to[place] = of_.values_[e];
            }
        }

       private:
        const Store& of_;
        const int64_t* chosen_;
        Size n_;
        std::vector<Size> next_, place_;
    };

    void scan_sparse(const double* w, double* mean, double* variance) const {
        const double total = std::accumulate(w, w + n_, 0.0);
        const Size counted = n_ - std::count(w, w + n_, 0.0);
        for (Size j = 0; j < p_; ++j) {
            double sum = 0, held = 0, squares = 0;
            Size stored = 0;
            for (Size e = ends_[j]; e < ends_[j + 1]; ++e) {
                const double weight = w[rows_[e]];
                sum += weight * values_[e], held += weight, stored += weight != 0;
            }
            for (Size e = ends_[j]; e < ends_[j + 1]; ++e) squares += w[rows_[e]] * std::pow(values_[e] - sum, 2);
            const double zeros = stored < counted ? std::max(total - held, 0.0) : 0.0;
            mean[j] = sum, variance[j] = squares + zeros * sum * sum;
        }
    }

    Column column(Size j) const {
        if (dense_) return {dense_ + j * n_};
        const double center = scale_ ? center_[j] : 0.0, scale = scale_ ? scale_[j] : 1.0;
        return {values_ + ends_[j], rows_ + ends_[j], Size(ends_[j + 1] - ends_[j]), center, scale};
    }

    Named numbers_;  // whose arrays are in use
    Size n_, p_ = 0;
    const double *dense_ = nullptr, *values_ = nullptr, *center_ = nullptr, *scale_ = nullptr;
    const int32_t* rows_ = nullptr;
    const int64_t* ends_ = nullptr;
};

// The matrix of moments that is left of `whole` without what is `lost`, over a share of the weights, about means that have
// moved, in units of the columns.
void lessen(nb::dict arrays, double share) {
    const Named from("the moments", arrays);
    const Size p = from.length("moved");
    const auto [whole, stride] = from.square("whole", p);
    const auto [lost, lost_stride] = from.square("lost", p);
    const double *moved = from.numbers("moved", {p}), *unit = from.numbers("unit", {p});
    double* out = from.array<double>("out", {p, p});
    nb::gil_scoped_release nogil;
    std::vector<double> factor(p);
    for (Size j = 0; j < p; ++j) factor[j] = 1 / unit[j];
    for (Size i = 0; i < p; ++i)
        kernels->lessen(p, whole + i * stride, lost + i * lost_stride, share, moved[i], moved, factor[i], factor.data(), out + i * p);
}

void lengths(nb::dict arrays) {
    const Named from("the points", arrays);
    const Size k = from.length("R"), n = from.length("R", 1);
    const double *R = from.numbers("R", {k, n}), *residual = from.numbers("residual", {k, n}), *end = from.numbers("end", {n}),
                 *last = from.numbers("last", {n}), *weights = from.numbers("weights", {n});
    double* out = from.array<double>("out", {k, 5});
    nb::gil_scoped_release nogil;
    for (Size i = 0; i < k; ++i) kernels->lengths(n, R + i * n, residual + i * n, end, last, weights, out + i * 5);
}

// Columns, all of them unless told which, that bounds do not exclude from crossing the thresholds of the l1 penalty.
void may_cross(nb::dict arrays, double margin) {
    const Named from("the bounds", arrays);
    const Size p = from.length("weights"), k = from.length("z"), q = from.length("z", 1), references = from.length("bounds");
    const double *z = from.numbers("z", {k, q}), *along = from.numbers("along", {k, q}), *slack = from.numbers("slack", {p, 1}),
                 *weights = from.numbers("weights", {p, q}), *bounds = from.numbers("bounds", {references, 3});
    const bool limited = from.has("lower");
    const double *lower = limited ? from.numbers("lower", {p, q}) : nullptr, *upper = limited ? from.numbers("upper", {p, q}) : nullptr;
    const int64_t* owner = from.array<const int64_t>("owner", {k});
    const int64_t* columns = from.has("columns") ? from.array<const int64_t>("columns", {k}) : nullptr;
    bool* near = from.array<bool>("near", {k});
    const auto within = [k](const int64_t* x, Size limit) {
        return std::all_of(x, x + k, [limit](int64_t i) { return i >= 0 && i < limit; });
    };
    require(columns ? within(columns, p) : k == p, "a column is out of range");
    require(within(owner, references), "a reference is out of range");
    nb::gil_scoped_release nogil;
    for (Size c = 0; c < k; ++c) {
        const Size j = columns ? columns[c] : c;
        const double* seen = bounds + 3 * owner[c];
        const double reach = slack[j] * seen[2] + margin;
        near[c] = false;
        for (Size l = 0; l < q; ++l) {
            const double start = z[c * q + l], speed = along[c * q + l], threshold = weights[j * q + l];
            const double a = start + seen[0] * speed, b = start + seen[1] * speed;
            const double most = limited && upper[j * q + l] == 0 ? 0.0 : std::max(a, b);
            const double least = limited && lower[j * q + l] == 0 ? 0.0 : std::min(a, b);
            near[c] = near[c] || threshold == 0 || threshold - std::max(most, -least) < reach;
        }
    }
}

}  // namespace

void bind_screening(nb::module_& m, const Kernels* chosen) {
    kernels = chosen;
    nb::class_<Store>(m, "Store", "Columns where they lie.")
        .def(nb::init<Size, nb::dict>(), nb::arg("n"), nb::arg("numbers"))
        .def("products", &Store::products, nb::arg("arrays"))
        .def("predict", &Store::predict, nb::arg("arrays"))
        .def("scan", &Store::scan, nb::arg("arrays"))
        .def("moments", &Store::moments, nb::arg("arrays"));
    m.def("lessen", &lessen, nb::arg("arrays"), nb::arg("share"));
    m.def("lengths", &lengths, nb::arg("arrays"));
    m.def("may_cross", &may_cross, nb::arg("arrays"), nb::arg("margin"));
}

// The Python module bregpath._kernels._core: chooses the instruction set, checks and hands over arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "lookout.hpp"
#include "stepper.hpp"

namespace nb = nanobind;

void bind_gibbs(nb::module_& m);  // gibbs.cpp

namespace {

using bregpath::Kernels;

// Highest level that this processor and its operating system run: 0 base, 3 or 4.
int processor_level() {
#if defined(BREGPATH_X86_LEVELS) && defined(BREGPATH_CXX_KNOWS_CPU_LEVELS)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return 4;
    if (__builtin_cpu_supports("x86-64-v3")) return 3;
#elif defined(BREGPATH_X86_LEVELS)
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (v4) return 4;
    if (v3) return 3;
#endif
    return 0;
}

// BREGPATH_ISA=base|v3|v4 lowers the level (tests, comparisons); it never raises it above the processor's.
int wanted_level() {
    const char* text = std::getenv("BREGPATH_ISA");
    if (text == nullptr || *text == '\0') return 4;
    const std::string isa(text);
    if (isa == "base") return 0;
    if (isa == "v3") return 3;
    if (isa == "v4") return 4;
    throw std::runtime_error("BREGPATH_ISA must be 'base', 'v3' or 'v4', found '" + isa + "'");
}

const Kernels* choose_kernels() {
    const int wanted = wanted_level();
    const int found = processor_level();
    [[maybe_unused]] const int level = wanted < found ? wanted : found;
#ifdef BREGPATH_X86_LEVELS
    if (level >= 4) return bregpath_kernels_v4();
    if (level >= 3) return bregpath_kernels_v3();
#endif
    return bregpath_kernels_base();
}

const Kernels* kernels = nullptr;  // chosen once, when the module is loaded

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using FortranMatrix = nb::ndarray<const double, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
using Index32 = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Index64 = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using IndexMatrix = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* what) {
    if (!condition) throw std::invalid_argument(what);
}

// Python keeps (rows, q), the kernels keep output by output.
void from_python(const double* from, long rows, int q, double* to) {
    for (long i = 0; i < rows; ++i)
        for (int l = 0; l < q; ++l) to[l * rows + i] = from[i * q + l];
}
void to_python(const double* from, long rows, int q, double* to) {
    for (long i = 0; i < rows; ++i)
        for (int l = 0; l < q; ++l) to[i * q + l] = from[l * rows + i];
}

// A stepper with everything it points to.
class PyStepper {
   public:
    nb::object user_evaluate, user_bend;  // a loss written in Python, or nothing

    PyStepper(int loss, double parameter, Vector y, Vector w, std::optional<Matrix> offset, Matrix weights,
              Matrix lower, Matrix upper, std::optional<Index64> groups, double kappa, bool fit_intercept,
              double fixed_step, double tol, std::optional<FortranMatrix> dense, std::optional<Vector> values,
              std::optional<Index32> indices, std::optional<Index64> indptr, std::optional<Vector> center,
              std::optional<Vector> scale, std::optional<nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>> gram,
              std::optional<Vector> gram_mean, std::optional<Vector> gram_target, double y_mean, double y_square,
              std::optional<nb::callable> evaluate, std::optional<nb::callable> bend, std::optional<IndexMatrix> source,
              std::optional<IndexMatrix> target, std::optional<Index64> node_states, bool linear_stages,
              nb::callable check)
        : lookout_(std::move(check)), gram_array_(gram), gram_mean_(gram_mean), gram_target_(gram_target), y_(y), w_(w), dense_(dense),
          values_(values), indices_(indices) {
        if (evaluate && bend) user_evaluate = *evaluate, user_bend = *bend;
        n_ = long(w.shape(0)), m_ = int(weights.shape(0)), q_ = int(weights.shape(1));
        require(lower.shape(0) == weights.shape(0) && lower.shape(1) == weights.shape(1), "lower has a wrong shape");
        require(upper.shape(0) == weights.shape(0) && upper.shape(1) == weights.shape(1), "upper has a wrong shape");
        bregpath::Data data{static_cast<bregpath::Loss>(loss), parameter, q_, y_.data(), w_.data(), nullptr};
        auto mirror = penalty(weights, lower, upper, groups);
        if (source && target && node_states) {
            auto rows = graph_rows(data, *source, *target, *node_states, columns(indptr, center, scale));
            outputs_ = rows->n_alpha;
            stepper_.emplace(kernels, std::move(rows), std::move(mirror), kappa, fit_intercept, fixed_step, tol,
                             linear_stages);
            return;
        }
        outputs_ = q_;
        require(long(y.shape(0)) == n_, "w and y differ in length");
        if (offset) {
            require(long(offset->shape(0)) == n_ && int(offset->shape(1)) == q_, "offset has a wrong shape");
            offset_.resize(size_t(n_) * q_);
            from_python(offset->data(), n_, q_, offset_.data());
            data.offset = offset_.data();
        }
        const auto x = columns(indptr, center, scale);
        require(x.k == m_, "the block has a wrong number of columns");
        auto rows = std::make_unique<bregpath::RegressionRows>(kernels, data, x, user_loss());
        if (!gram) {
            stepper_.emplace(kernels, std::move(rows), std::move(mirror), kappa, fit_intercept, fixed_step, tol);
            return;
        }
        require(gram->stride(1) == 1 && int(gram->shape(0)) == m_ && int(gram->shape(1)) == m_ && gram_mean &&
                    gram_target && q_ == 1,
                "the Gram matrix has a wrong shape");
        const bregpath::Gram g{gram->data(), long(gram->stride(0)), gram_mean_->data(), gram_target_->data(), y_mean,
                               y_square};
        stepper_.emplace(kernels, std::move(rows), std::move(mirror), kappa, fit_intercept, fixed_step, tol, g);
    }

    // Up to max_steps steps from the given knot. The outputs have room for max_steps + 1 knots; row 0 is filled by
    // the caller. Without keep_rows the arrays over rows (R, residual, frozen) hold the last knot only. Trouble after
    // the first step ends the block there; a step that was begun has changed nothing.
    nb::tuple advance(double t, double value, double h, double rate, int age, Matrix z, Matrix slope, Vector alpha,
                      Vector alpha_slope, Matrix R, Matrix residual, Matrix direction, Vector alpha_direction,
                      Matrix frozen, double frozen_t,
                      double until, int max_steps, bool keep_rows,
                      Out out_t, Out out_value, Out out_h, Out out_reach, Out out_counts, Out out_alpha,
                      Out out_alpha_slope, Out out_z, Out out_slope, Out out_direction, Out out_alpha_direction, Out out_R, Out out_residual,
                      Out out_frozen) {
        stepper_->pause = std::ref(lookout_);
        auto& s = stepper_->state;
        s.t = t, s.value = value, s.h = h, s.rate = rate, s.age = age, s.gradients = 0, s.products = 0;
        from_python(z.data(), m_, q_, s.z.data());
        from_python(slope.data(), m_, q_, s.slope.data());
        from_python(direction.data(), m_, q_, s.direction.data());
        from_python(R.data(), n_, outputs_, s.R.data());
        from_python(residual.data(), n_, outputs_, s.residual.data());
        std::copy_n(alpha.data(), outputs_, s.alpha.begin());
        std::copy_n(alpha_slope.data(), outputs_, s.alpha_slope.begin());
        std::copy_n(alpha_direction.data(), outputs_, s.alpha_direction.begin());
        double *pt = out_t.data(), *pv = out_value.data(), *ph = out_h.data(), *pr = out_reach.data();
        double *pc = out_counts.data(), *pa = out_alpha.data(), *pas = out_alpha_slope.data();
        double *pz = out_z.data(), *ps = out_slope.data(), *pd = out_direction.data();
        double* pad = out_alpha_direction.data();
        double *pR = out_R.data(), *pres = out_residual.data(), *pf = out_frozen.data();
        const bool linear = stepper_->has_linear_stages();
        if (frozen_t == 0) stepper_->frozen_t = 0;  // the first step takes it anew
        if (linear && frozen_t > 0) {
            std::vector<double> inside(s.R.size());
            from_python(frozen.data(), n_, outputs_, inside.data());
            stepper_->set_frozen(std::move(inside), frozen_t);
        }
        int done = 0;
        double largest = 0;
        const char* trouble = "";
        {
            nb::gil_scoped_release nogil;
            stepper_->begin();
            try {
                while (done < max_steps && s.t < until) {
                    stepper_->step();
                    ++done;
                    const size_t cols = size_t(m_) * q_, rows = size_t(n_) * outputs_;
                    pt[done] = s.t, pv[done] = s.value, ph[done] = s.h, pr[done] = s.reach;
                    pc[5 * done] = double(s.gradients), pc[5 * done + 1] = double(s.products);
                    pc[5 * done + 2] = s.rate, pc[5 * done + 3] = s.age, pc[5 * done + 4] = stepper_->frozen_t;
                    std::copy_n(s.alpha.begin(), outputs_, pa + done * outputs_);
                    std::copy_n(s.alpha_slope.begin(), outputs_, pas + done * outputs_);
                    to_python(s.z.data(), m_, q_, pz + done * cols);
                    to_python(s.slope.data(), m_, q_, ps + done * cols);
                    to_python(s.direction.data(), m_, q_, pd + done * cols);
                    std::copy_n(s.alpha_direction.begin(), outputs_, pad + done * outputs_);
                    if (keep_rows) {
                        stepper_->update_rows();
                        to_python(s.R.data(), n_, outputs_, pR + done * rows);
                        to_python(s.residual.data(), n_, outputs_, pres + done * rows);
                        if (linear) to_python(stepper_->frozen.data(), n_, outputs_, pf + done * rows);
                    } else if (linear && stepper_->frozen_t != frozen_t) {
                        to_python(stepper_->frozen.data(), n_, outputs_, pf);
                        frozen_t = stepper_->frozen_t;
                    }
                }
            } catch (const bregpath::Unstable& e) {
                trouble = "unstable", largest = e.largest;
            } catch (const bregpath::Stalled&) {
                trouble = "stalled";
            } catch (const nb::python_error& e) {
                nb::gil_scoped_acquire gil;
                if (done == 0 || !e.matches(PyExc_KeyboardInterrupt)) throw;
                trouble = "interrupted";
            }
            if (!keep_rows) {
                stepper_->update_rows();
                to_python(s.R.data(), n_, outputs_, pR);
                to_python(s.residual.data(), n_, outputs_, pres);
            }
        }
        return nb::make_tuple(done, trouble, largest);
    }

    // Loss at coefficients (T, m, q) and intercepts (T, q).
    void values(Matrix alpha, nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> beta, Out out) {
        const size_t cols = size_t(m_) * q_;
        const double *pa = alpha.data(), *pb = beta.data();
        double* result = out.data();
        const long times = long(alpha.shape(0));
        nb::gil_scoped_release nogil;
        std::vector<double> inside(cols);
        for (long t = 0; t < times; ++t) {
            lookout_(double(n_) * m_);
            from_python(pb + t * cols, m_, q_, inside.data());
            result[t] = stepper_->value(pa + t * outputs_, inside.data());
        }
    }

   private:
    bregpath::Columns columns(const std::optional<Index64>& indptr, const std::optional<Vector>& center,
                              const std::optional<Vector>& scale) {
        bregpath::Columns x{};
        x.n = n_, x.k = m_;
        if (dense_) {
            require(long(dense_->shape(0)) == n_, "the dense block has a wrong shape");
            x.k = int(dense_->shape(1));
            for (int j = 0; j < x.k; ++j) pointers_.push_back(dense_->data() + size_t(j) * n_);
            x.dense = pointers_.data();
            return x;
        }
        if (!values_) {  // a Gram matrix stands for the rows
            require(gram_array_.has_value(), "there are neither columns nor a Gram matrix");
            return x;
        }
        require(values_ && indices_ && indptr && center && scale, "a sparse block needs all of its parts");
        x.k = int(indptr->shape(0)) - 1;
        require(int(center->shape(0)) == x.k && int(scale->shape(0)) == x.k,
                "the parts of a sparse block differ in length");
        center_.assign(center->data(), center->data() + x.k);
        scale_.assign(scale->data(), scale->data() + x.k);
        for (int j = 0; j < x.k; ++j) {
            const int64_t begin = indptr->data()[j];
            pointers_.push_back(values_->data() + begin);
            rows_.push_back(indices_->data() + begin);
            counts_.push_back(long(indptr->data()[j + 1] - begin));
        }
        x.values = pointers_.data(), x.rows = rows_.data(), x.counts = counts_.data();
        x.center = center_.data(), x.scale = scale_.data();
        return x;
    }

    // y holds all rows of the first node, then those of the second, and so on.
    std::unique_ptr<bregpath::Rows> graph_rows(const bregpath::Data& data, const IndexMatrix& source,
                                               const IndexMatrix& target, const Index64& states,
                                               const bregpath::Columns& features) const {
        const size_t places = source.shape(1);
        require(int(source.shape(0)) == m_ && int(target.shape(0)) == m_ && target.shape(1) == places && q_ == 1,
                "the places of the coefficients have a wrong shape");
        require(y_.shape(0) == states.shape(0) * size_t(n_), "y has a wrong length");
        std::vector<bregpath::GraphRows::Node> nodes;
        int first = 0;
        for (size_t d = 0; d < states.shape(0); ++d) {
            const int count = int(states.data()[d]);
            nodes.push_back({first, count, data});
            nodes.back().data.q = count;
            nodes.back().data.y = y_.data() + d * size_t(n_);
            first += count;
        }
        const auto checked = [&](const IndexMatrix& from, int limit) {
            std::vector<int> to;
            for (size_t i = 0; i < places * size_t(m_); ++i) {
                require(from.data()[i] >= 0 && from.data()[i] < limit, "a coefficient has a place out of range");
                to.push_back(int(from.data()[i]));
            }
            return to;
        };
        return std::make_unique<bregpath::GraphRows>(kernels, std::move(nodes), features, checked(source, features.k),
                                                     checked(target, first), int(places));
    }

    // Callbacks hold the interpreter lock while they run; arrays cross the border as (n, q).
    bregpath::UserLoss user_loss() {
        if (!user_evaluate || !user_bend) return {};
        const auto call = [this](const nb::object& f, const double* eta, double* inout, const double* in) {
            nb::gil_scoped_acquire gil;
            const size_t size = size_t(n_) * q_;
            std::vector<double> a(size), b(size);
            to_python(eta, n_, q_, a.data());
            if (in) to_python(in, n_, q_, b.data());
            const size_t shape[2] = {size_t(n_), size_t(q_)};
            using Array = nb::ndarray<nb::numpy, double, nb::ndim<2>>;
            // By reference: by default nanobind hands over a copy, and what Python writes would be lost.
            const nb::object x = nb::cast(Array(a.data(), 2, shape), nb::rv_policy::reference);
            const nb::object y = nb::cast(Array(b.data(), 2, shape), nb::rv_policy::reference);
            const double value = nb::cast<double>(f(x, y));
            from_python(b.data(), n_, q_, inout);
            return value;
        };
        return {[this, call](const double* eta, double* r) { return call(user_evaluate, eta, r, nullptr); },
                [this, call](const double* eta, double* u) { call(user_bend, eta, u, u); }};
    }

    bregpath::Penalty penalty(const Matrix& weights, const Matrix& lower, const Matrix& upper,
                              const std::optional<Index64>& groups) const {
        bregpath::Penalty p;
        p.m = m_, p.q = q_;
        const size_t size = size_t(m_) * q_;
        p.weights.resize(size), p.lower.resize(size), p.upper.resize(size);
        from_python(weights.data(), m_, q_, p.weights.data());
        from_python(lower.data(), m_, q_, p.lower.data());
        from_python(upper.data(), m_, q_, p.upper.data());
        for (size_t i = 0; i < size; ++i)
            for (const double limit : {p.lower[i], p.upper[i]}) {
                p.has_limits = p.has_limits || std::isfinite(limit);
                p.has_box = p.has_box || (std::isfinite(limit) && limit != 0);
            }
        if (groups) {
            require(int(groups->shape(0)) == m_, "groups has a wrong length");
            for (int j = 0; j < m_; ++j) p.group.push_back(int(groups->data()[j]));
            for (int g : p.group) p.n_groups = std::max(p.n_groups, g + 1);
        }
        return p;
    }

    bregpath::Lookout lookout_;
    std::optional<nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>> gram_array_;
    std::optional<Vector> gram_mean_, gram_target_;
    long n_;
    int m_, q_, outputs_;  // columns, coefficients of each, unpenalised parameters
    Vector y_, w_;
    std::optional<FortranMatrix> dense_;
    std::optional<Vector> values_;
    std::optional<Index32> indices_;
    std::vector<double> offset_, center_, scale_;
    std::vector<const double*> pointers_;
    std::vector<const int32_t*> rows_;
    std::vector<long> counts_;
    std::optional<bregpath::Stepper> stepper_;
};


// A user's loss may lead back to the stepper: let the garbage collector see it.
int traverse(PyObject* self, visitproc visit, void* arg) {
#if PY_VERSION_HEX >= 0x03090000
    Py_VISIT(Py_TYPE(self));
#endif
    if (!nb::inst_ready(self)) return 0;
    auto* stepper = nb::inst_ptr<PyStepper>(self);
    Py_VISIT(stepper->user_evaluate.ptr());
    Py_VISIT(stepper->user_bend.ptr());
    return 0;
}

int clear(PyObject* self) {
    auto* stepper = nb::inst_ptr<PyStepper>(self);
    stepper->user_evaluate.reset();
    stepper->user_bend.reset();
    return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

}  // namespace

NB_MODULE(_core, m) {
    kernels = choose_kernels();
    m.doc() = "Compiled kernels of bregpath.";
    m.def("isa", [] { return kernels->isa; }, "Instruction set in use: 'base', 'v3' or 'v4'.");
    bind_gibbs(m);
    nb::class_<PyStepper>(m, "Stepper", nb::type_slots(slots), "Blocks of steps on a working set of columns.")
        .def(nb::init<int, double, Vector, Vector, std::optional<Matrix>, Matrix, Matrix, Matrix,
                      std::optional<Index64>, double, bool, double, double, std::optional<FortranMatrix>,
                      std::optional<Vector>, std::optional<Index32>, std::optional<Index64>, std::optional<Vector>,
                      std::optional<Vector>, std::optional<nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>>,
                      std::optional<Vector>, std::optional<Vector>, double, double, std::optional<nb::callable>,
                      std::optional<nb::callable>, std::optional<IndexMatrix>, std::optional<IndexMatrix>,
                      std::optional<Index64>, bool, nb::callable>(),
             nb::kw_only(), nb::arg("loss"), nb::arg("parameter"), nb::arg("y"), nb::arg("w"),
             nb::arg("offset").none(), nb::arg("weights"), nb::arg("lower"), nb::arg("upper"),
             nb::arg("groups").none(), nb::arg("kappa"), nb::arg("fit_intercept"), nb::arg("fixed_step"),
             nb::arg("tol"), nb::arg("dense").none(), nb::arg("values").none(), nb::arg("indices").none(),
             nb::arg("indptr").none(), nb::arg("center").none(), nb::arg("scale").none(),
             nb::arg("gram").none(), nb::arg("gram_mean").none(), nb::arg("gram_target").none(), nb::arg("y_mean"),
             nb::arg("y_square"), nb::arg("user_evaluate").none(), nb::arg("user_bend").none(),
             nb::arg("source").none(), nb::arg("target").none(), nb::arg("node_states").none(),
             nb::arg("linear_stages"), nb::arg("check"))
        .def("advance", &PyStepper::advance)
        .def("values", &PyStepper::values);
}

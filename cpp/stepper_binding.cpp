// Python's door to the stepper: reads what losses, penalties and blocks say of themselves, and writes blocks of steps.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "columns.hpp"
#include "lookout.hpp"
#include "stepper.hpp"

namespace {

using namespace bregpath;

const Kernels* kernels = nullptr;  // chosen once, when the module is loaded

const std::map<std::string, Loss> kLosses = {
    {"gaussian", Loss::gaussian}, {"logistic", Loss::logistic},       {"poisson", Loss::poisson},
    {"huber", Loss::huber},       {"multinomial", Loss::multinomial}, {"ising-flow", Loss::ising_flow},
    {"user", Loss::user},
};
const std::set<std::string> kPrecisionLosses = {"gaussian-likelihood", "gaussian-composite"};

bool knows(const std::string& loss, const std::string& penalty, const std::string& block) {
    static const std::set<std::string> penalties = {"l1", "group"}, blocks = {"dense", "csc", "pairwise", "states", "gram",
                                                                                      "sparse-gram"};
    const bool is_known = block == "precision" ? kPrecisionLosses.count(loss) : kLosses.count(loss) && blocks.count(block);
    return is_known && penalties.count(penalty);
}

// A name and numbers, as the methods `kernel` in Python answer.
struct Kernel {
    explicit Kernel(const nb::tuple& said)
        : name(nb::cast<std::string>(said[0])), numbers("`" + name + "`", nb::cast<nb::dict>(said[1])) {}
    std::string name;
    Named numbers;
};

Settings read_settings(const Named& from) {
    Settings to{};
    const std::pair<const char*, double*> numbers[] = {
        {"kappa", &to.kappa},             {"step", &to.fixed_step},           {"tol", &to.tol},
        {"SAFETY", &to.safety},           {"RATE_MARGIN", &to.rate_margin},   {"RATE_STEPS", &to.rate_steps},
        {"RATE_SHARE", &to.rate_share},   {"ENTRY_SHARE", &to.entry_share},   {"ENTRY_FLOOR", &to.entry_floor},
        {"MAX_STAGES", &to.max_stages},   {"MAX_ATTEMPTS", &to.max_attempts}, {"MIN_PROGRESS", &to.min_progress},
        {"SEEN", &to.seen},               {"ROUNDING", &to.rounding},         {"NOISE", &to.noise},
        {"DAMPING", &to.damping},         {"STABILITY", &to.stability},       {"FREEZE_GROWTH", &to.freeze_growth},
        {"INSIDE", &to.inside},           {"STEP_BITS", &to.step_bits},       {"NUDGE", &to.nudge},
        {"FIRST", &to.first},             {"ENTRY_AHEAD", &to.entry_ahead},   {"WATCH_GROWTH", &to.watch_growth},
    };
    for (const auto& [name, number] : numbers) *number = from.get<double>(name);
    to.looks_inside = from.get<bool>("looks_inside");
    return to;
}

Penalty read_penalty(const Kernel& from) {
    const Size m = from.numbers.length("weights"), q = from.numbers.length("weights", 1);
    const auto by_output = [&](const char* name) {
        std::vector<double> to(m * q);
        transpose(from.numbers.numbers(name, {m, q}), m, q, to.data());
        return to;
    };
    Index groups;
    if (from.name == "group") {
        const int64_t* labels = from.numbers.array<const int64_t>("groups", {m});
        groups.assign(labels, labels + m);
        for (const Size g : groups) require(g >= 0 && g < m, "a group has a number out of range");
    }
    return {m, q, by_output("weights"), by_output("lower"), by_output("upper"), groups};
}

// The columns of a block of n rows; none where a Gram matrix stands for them.
std::vector<Column> read_columns(const Named& from, Size n, Opposites& opposites) {
    std::vector<Column> columns;
    if (from.has("dense")) {
        const Size k = from.length("dense", 1);
        const double* x = from.array<const double, nb::f_contig>("dense", {n, k});
        for (Size j = 0; j < k; ++j) columns.push_back({x + j * n});
    } else if (from.has("values")) {
        const Size k = from.length("indptr") - 1, stored = from.length("values");
        const double* values = from.numbers("values", {stored});
        const int32_t* rows = from.array<const int32_t>("indices", {stored});
        const int64_t* ends = from.array<const int64_t>("indptr", {k + 1});
        const double *center = from.numbers("center", {k}), *scale = from.numbers("scale", {k});
        require(std::all_of(rows, rows + stored, [n](int32_t i) { return i >= 0 && i < n; }),
                "a row of a sparse block is out of range");
        for (Size j = 0; j < k; ++j) {
            require(0 <= ends[j] && ends[j] <= ends[j + 1] && ends[j + 1] <= stored, "`indptr` is out of range");
            const double *first = values + ends[j], *last = values + ends[j + 1];
            const bool is_indicator = first < last && std::all_of(first, last, [first](double x) { return x == *first; });
            const Column column{first, rows + ends[j], ends[j + 1] - ends[j], center[j], scale[j], is_indicator};
            columns.push_back(opposites.shorter(column, n));
        }
    }
    return columns;
}

void require_classes(const Data& data, Size n) {
    for (Size i = 0; data.loss == Loss::multinomial && i < n; ++i)
        require(data.y[i] >= 0 && data.y[i] < double(data.q), "a class is out of range");
}

std::unique_ptr<Rows> read_gram_rows(const Named& from, const Data& data, Columns x, Size m, double alpha_rate) {
    require(data.q == 1, "a Gram matrix is that of one output");
    x.at = x.k > 0 ? x.at : nullptr, x.k = m;
    const auto [matrix, stride] = from.square("gram", m);
    const Moments moments{matrix, stride, from.numbers("gram_mean", {m}), from.numbers("gram_target", {m}),
                          from.get<double>("y_mean"), from.get<double>("y_square")};
    return gram_rows(kernels, data, x, moments, alpha_rate);
}

bool are_spins(const Columns& x) {
    const auto is_spin = [](double value) { return value == 1 || value == -1; };
    return x.is_dense && std::all_of(x.at, x.at + x.k, [&](const Column& column) {
               return std::all_of(column.values, column.values + x.n, is_spin);
           });
}

// y holds all rows of the first node, then those of the second, and so on.
std::unique_ptr<Rows> read_graph_rows(const Kernel& loss, const Named& block, Data data, const Columns& features,
                                      Size m, double alpha_rate, bool linear_stages, bool of_states) {
    const Size n = features.n, p = loss.numbers.length("nodes"), places = block.length("source", 1);
    const int64_t* states = loss.numbers.array<const int64_t>("nodes", {p});
    std::vector<Node> nodes;
    Size outputs = 0;
    for (Size d = 0; d < p; ++d, data.y += n, outputs += data.q) {
        data.q = states[d];
        require_classes(data, n);
        nodes.push_back({outputs, data});
    }
    const auto read = [&](const char* name, Size limit) {
        const int64_t* from = block.array<const int64_t>(name, {m, places});
        require(std::all_of(from, from + m * places, [&](int64_t i) { return i >= 0 && i < limit; }),
                "a coefficient has a place out of range");
        return std::vector<int32_t>(from, from + m * places);
    };
    require(p > 0 && places > 0 && (of_states || features.k > 0), "a graph has no nodes or no features");
    if (of_states) {
        require(data.loss == Loss::multinomial, "nodes with states have a loss of their own");
        return state_rows(kernels, n, std::move(nodes), {read("source", outputs), read("target", outputs), places},
                          alpha_rate);
    }
    Places ends{read("source", features.k), read("target", outputs), places};
    if (!linear_stages) return graph_rows(kernels, std::move(nodes), features, std::move(ends), alpha_rate);
    require(outputs == p && are_spins(features), "only spins have linear stages");
    return spin_rows(kernels, std::move(nodes), features, std::move(ends), alpha_rate);
}

std::unique_ptr<Rows> read_precision_rows(const Kernel& loss, const Named& block, const Named& data, Size m,
                                          double alpha_rate) {
    const Size p = block.get<Size>("n_nodes");
    require(p > 0 && p <= 46340, "a graph has no nodes, or so many that places do not fit 32 bits");
    const int64_t* above = block.array<const int64_t>("above", {m});
    require(std::all_of(above, above + m, [p](int64_t i) { return i >= 0 && i < p * p && i / p < i % p; }),
            "a coefficient has a place out of range");
    const Covariance covariance{p, data.numbers("y", {p * p}), Index(above, above + m)};
    if (loss.name == "gaussian-likelihood") return likelihood_rows(kernels, covariance, alpha_rate);
    return composite_rows(kernels, covariance, alpha_rate, loss.numbers.get<double>("margin"));
}

// Rows of the predictor, which is a whole matrix in a Gaussian graph.
Size count_rows(const Named& block, const Named& data) {
    return block.has("n_nodes") ? block.get<Size>("n_nodes") : data.length("w");
}

// Arrays that the steps of a block are written to, by the names of the fields of a state.
class Record {
   public:
    // Directions of so many steps are kept, or the last one only.
    Record(const Named& to, Size steps, Size kept, Size m, Size q, Size n_alpha) {
        double State::*const fields[] = {&State::reach,     &State::t,         &State::value,    &State::h,
                                         &State::rate,      &State::frozen_t,  &State::watched_t, &State::age,
                                         &State::gradients, &State::products, &State::watched_products, &State::is_stiff};
        double* number = to.array<double>("numbers", {Size(std::size(fields)), steps});
        for (const auto field : fields) numbers_.push_back({field, number}), number += steps;
        const std::pair<const char*, Values> of_alpha[] = {
            {"alpha", &State::alpha}, {"alpha_slope", &State::alpha_slope}, {"alpha_direction", &State::alpha_direction}};
        const std::pair<const char*, Values> of_columns[] = {
            {"z", &State::z}, {"slope", &State::slope}, {"direction", &State::direction}};
        for (const auto& [name, field] : of_alpha)
            arrays_.push_back({field, to.array<double>(name, {steps, n_alpha}), n_alpha, 1, false});
        for (const auto& [name, field] : of_columns) {
            const Size rows = field == &State::direction ? kept : steps;
            arrays_.push_back({field, to.array<double>(name, {rows, m, q}), m, q, rows < steps});
        }
    }

    void read(Size i, State& s) const {
        for (const auto& [field, from] : numbers_) s.*field = from[i];
        for (const auto& a : arrays_) transpose(a.numbers + a.row(i), a.m, a.q, (s.*a.field).data());
    }

    void write(Size i, const State& s) const {
        for (const auto& [field, to] : numbers_) to[i] = s.*field;
        for (const auto& a : arrays_) transpose((s.*a.field).data(), a.q, a.m, a.numbers + a.row(i));
    }

   private:
    using Values = std::vector<double> State::*;
    struct Array {
        Values field;
        double* numbers;
        Size m, q;
        bool is_last_only;

        Size row(Size i) const { return is_last_only ? 0 : i * m * q; }
    };
    std::vector<std::pair<double State::*, double*>> numbers_;
    std::vector<Array> arrays_;
};

// A stepper with everything it points to.
class PyStepper {
   public:
    PyStepper(nb::tuple loss, nb::tuple penalty, nb::tuple block, nb::dict data, nb::dict settings, nb::callable check)
        : lookout(std::move(check)), arguments(nb::make_tuple(loss, penalty, block, data)),
          n_(count_rows(Kernel(block).numbers, Named("the data", data))),
          columns_(read_columns(Kernel(block).numbers, n_, opposites_)) {
        require(knows(Kernel(loss).name, Kernel(penalty).name, Kernel(block).name), "loss, penalty or block is unknown");
        Penalty mirror = read_penalty(Kernel(penalty));
        m_ = mirror.m, q_ = mirror.q;
        const Named set("the settings", settings);
        const double alpha_rate = set.get<bool>("fit_intercept") ? set.get<double>("kappa") : 0.0;
        const bool linear = set.get<bool>("linear_stages");
        auto rows = make_rows(Kernel(loss), Kernel(block), Named("the data", data), alpha_rate, linear);
        stepper_ = std::make_unique<Stepper>(kernels, std::move(rows), std::move(mirror), read_settings(set));
        stepper_->rows().pause = std::ref(lookout);
    }

    // Up to max_steps steps from row 0 of the arrays, which have room for as many rows more. Without keep_rows those
    // over rows (R, residual, frozen) hold the last knot only. A step after which they cost too much is the last. Trouble
    // after the first step ends the block there; a step that was begun has changed nothing.
    nb::tuple advance(nb::dict arrays, double until, Size max_steps, bool keep_rows, double most_products) {
        const Named to("the block", arrays);
        State& s = stepper_->state;
        Rows& rows = stepper_->rows();
        const Size size = max_steps + 1, kept = keep_rows ? size : 1, n = rows.n_kept(), per_row = n * rows.n_alpha;
        const Record record(to, size, kept, m_, q_, rows.n_alpha);
        double* R = to.array<double>("R", {kept, n, rows.n_alpha});
        double* residual = to.array<double>("residual", {kept, n, rows.n_alpha});
        const bool linear = rows.has_linear_stages();
        double* frozen = linear ? to.array<double>("frozen", {kept, n, rows.n_alpha}) : nullptr;
        record.read(0, s);
        double largest = 0, stored_t = s.frozen_t;
        Size done = 0;
        const char* trouble = "";
        nb::gil_scoped_release nogil;
        if (linear && s.frozen_t > 0) rows.load_frozen(frozen);
        stepper_->load(R, residual);
        try {
            while (done < max_steps && s.t < until) {
                stepper_->step();
                const bool is_last = std::isfinite(most_products) && stepper_->is_stiff(most_products);
                record.write(++done, s);
                const Size at = keep_rows ? done * per_row : 0;
                if (keep_rows) rows.store(R + at, residual + at);
                if (linear && (keep_rows || s.frozen_t != stored_t)) rows.store_frozen(frozen + at);
                stored_t = s.frozen_t;
                if (is_last) break;
            }
        } catch (const Unstable& e) {
            trouble = "unstable", largest = e.largest;
        } catch (const Stalled& e) {
            trouble = e.outside ? "outside" : "stalled";
        } catch (const nb::python_error& e) {
            nb::gil_scoped_acquire gil;
            if (done == 0 || !e.matches(PyExc_KeyboardInterrupt)) throw;
            trouble = "interrupted";
        }
        if (!keep_rows && done > 0) rows.store(R, residual);
        rows.flush();
        nb::gil_scoped_acquire gil;
        return nb::make_tuple(done, trouble, largest);
    }

    // Loss at coefficients (T, m, q) and intercepts (T, n_alpha).
    void values(nb::dict arrays) {
        const Named points("the points", arrays);
        const Size times = points.length("out"), n_alpha = stepper_->rows().n_alpha;
        const double *alpha = points.numbers("alpha", {times, n_alpha}), *beta = points.numbers("beta", {times, m_, q_});
        double* out = points.array<double>("out", {times});
        nb::gil_scoped_release nogil;
        std::vector<double> inside(m_ * q_);
        for (Size t = 0; t < times; ++t) {
            transpose(beta + t * m_ * q_, m_, q_, inside.data());
            out[t] = stepper_->value(alpha + t * n_alpha, inside.data());
        }
    }

    // Loss, residual (n, q) and speeds at coefficients (m, q) and intercepts.
    double look(nb::dict arrays) {
        const Named point("the point", arrays);
        const Size n_alpha = stepper_->rows().n_alpha;
        const double *alpha = point.numbers("alpha", {n_alpha}), *beta = point.numbers("beta", {m_, q_});
        double *residual = point.array<double>("residual", {n_, n_alpha}), *slope = point.array<double>("slope", {m_, q_}),
               *alpha_slope = point.array<double>("alpha_slope", {n_alpha});
        nb::gil_scoped_release nogil;
        std::vector<double> inside(m_ * q_), speed(m_ * q_ + n_alpha);
        transpose(beta, m_, q_, inside.data());
        const double value = stepper_->look(alpha, inside.data(), residual, speed.data());
        transpose(speed.data(), q_, m_, slope), std::copy_n(speed.end() - n_alpha, n_alpha, alpha_slope);
        return value;
    }

    Size n_grouped() const { return stepper_->rows().n_grouped(); }
    Size n_at_work() const { return stepper_->rows().n_at_work(); }

    Lookout lookout;
    nb::object arguments;                      // whose arrays are in use
    nb::object user_evaluate, user_curvature;  // a loss written in Python, or nothing

    std::array<nb::object*, 4> held() { return {&lookout.check, &arguments, &user_evaluate, &user_curvature}; }

   private:
    std::unique_ptr<Rows> make_rows(const Kernel& loss, const Kernel& block, const Named& from, double alpha_rate,
                                    bool linear) {
        if (block.name == "precision") {
            require(q_ == 1, "a coefficient of a graph is one number");
            return read_precision_rows(loss, block.numbers, from, m_, alpha_rate);
        }
        Data data{kLosses.at(loss.name), 0.0, q_, nullptr, from.numbers("w", {n_}), nullptr};
        if (data.loss == Loss::huber) data.threshold = loss.numbers.get<double>("threshold");
        const Columns x{n_, Size(columns_.size()), columns_.data(), block.numbers.has("dense")};
        if (block.name == "pairwise" || block.name == "states") {
            require(q_ == 1, "a coefficient of a graph is one number");
            data.y = from.numbers("y", {loss.numbers.length("nodes") * n_});
            return read_graph_rows(loss, block.numbers, data, x, m_, alpha_rate, linear, block.name == "states");
        }
        data.y = from.numbers("y", {n_});
        require_classes(data, n_);
        if (from.has("offset")) {
            offset_.resize(n_ * q_);
            transpose(from.numbers("offset", {n_, q_}), n_, q_, offset_.data());
            data.offset = offset_.data();
        }
        require(x.k == m_ || (x.k == 0 && block.name == "gram"), "the block has a wrong number of columns");
        if (block.name == "gram" || block.name == "sparse-gram") return read_gram_rows(block.numbers, data, x, m_, alpha_rate);
        return regression_rows(kernels, data, x, alpha_rate, user_loss(loss));
    }

    // Callbacks hold the interpreter lock while they run; they see and change our own arrays, as (n, q).
    UserLoss user_loss(const Kernel& loss) {
        if (loss.name != "user") return {};
        user_evaluate = loss.numbers.get<nb::callable>("evaluate");
        user_curvature = loss.numbers.get<nb::callable>("curvature");
        const auto view = [this](const double* numbers) {
            const size_t shape[2] = {size_t(n_), size_t(q_)};
            const int64_t strides[2] = {1, n_};
            using Array = nb::ndarray<nb::numpy, double, nb::ndim<2>>;
            // By reference: by default nanobind hands over a copy, and what Python writes would be lost.
            return nb::cast(Array(const_cast<double*>(numbers), 2, shape, {}, strides), nb::rv_policy::reference);
        };
        const auto evaluate = [this, view](const double* eta, double* r) {
            nb::gil_scoped_acquire gil;
            return nb::cast<double>(user_evaluate(view(eta), view(r)));
        };
        const auto curvature = [this, view](const double* eta, double* u) {
            nb::gil_scoped_acquire gil;
            user_curvature(view(eta), view(u));
        };
        return {evaluate, curvature};
    }

    Size n_, m_ = 0, q_ = 0;
    Opposites opposites_;
    std::vector<Column> columns_;
    std::vector<double> offset_;
    std::unique_ptr<Stepper> stepper_;
};

// What is called may lead back to the stepper: let the garbage collector see it.
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    for (nb::object* held : nb::inst_ptr<PyStepper>(self)->held()) Py_VISIT(held->ptr());
    return 0;
}

int clear(PyObject* self) {
    for (nb::object* held : nb::inst_ptr<PyStepper>(self)->held()) held->reset();
    return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

}  // namespace

void bind_stepper(nb::module_& m, const Kernels* chosen) {
    kernels = chosen;
    m.def("knows", &knows, nb::arg("loss"), nb::arg("penalty"), nb::arg("block"), "Whether all have kernels.");
    nb::class_<PyStepper>(m, "Stepper", nb::type_slots(slots), "Blocks of steps on a working set of columns.")
        .def(nb::init<nb::tuple, nb::tuple, nb::tuple, nb::dict, nb::dict, nb::callable>(), nb::kw_only(),
             nb::arg("loss"), nb::arg("penalty"), nb::arg("block"), nb::arg("data"), nb::arg("settings"),
             nb::arg("check"))
        .def("advance", &PyStepper::advance, nb::arg("arrays"), nb::arg("until"), nb::arg("max_steps"),
             nb::arg("keep_rows"), nb::arg("most_products") = kInfinity)
        .def("values", &PyStepper::values, nb::arg("arrays"))
        .def("look", &PyStepper::look, nb::arg("arrays"))
        .def_prop_ro("n_grouped", &PyStepper::n_grouped, "Columns that are multiplied by the patterns of their rows.")
        .def_prop_ro("n_at_work", &PyStepper::n_at_work, "Rows that steps work on, where one may stand for many.");
}

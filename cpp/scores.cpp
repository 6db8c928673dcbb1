// Losses of rows by many predictors at once: what rows held out are scored by. See selection/scores.py.
#include <vector>

#include "arguments.hpp"

namespace {

using namespace bregpath;

const Kernels* kernels = nullptr;  // chosen once, when the module is loaded

void losses(const std::string& loss, nb::dict arrays) {
    const Named from("the rows", arrays);
    const Size count = from.length("eta"), n = from.length("y");
    require(loss == "gaussian" || loss == "logistic", "the loss is unknown");
    const double *eta = from.numbers("eta", {count, n}), *y = from.numbers("y", {n}), *w = from.numbers("w", {n});
    const Data data{loss == "gaussian" ? Loss::gaussian : Loss::logistic, 0.0, 1, y, w, nullptr};
    double* out = from.array<double>("out", {count});
    nb::gil_scoped_release nogil;
    std::vector<double> residual(n);
    for (Size k = 0; k < count; ++k) out[k] = kernels->loss(data, n, eta + k * n, residual.data());
}

}  // namespace

void bind_scores(nb::module_& m, const Kernels* chosen) {
    kernels = chosen;
    m.def("losses", &losses, nb::arg("loss"), nb::arg("arrays"));
}

// Python's door to the Gibbs samplers: checks and hands over arrays.
#include "gibbs.hpp"

#include "arguments.hpp"

namespace {

using namespace bregpath;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A wrong index would read foreign memory, so all are checked.
template <class T>
void require_ranges(const Vector<T>& bounds, int64_t end, const char* what) {
    require(bounds.shape(0) > 0 && bounds.data()[0] == 0 && bounds.data()[bounds.shape(0) - 1] == end, what);
    for (size_t i = 1; i < bounds.shape(0); ++i) require(bounds.data()[i - 1] <= bounds.data()[i], what);
}

Graph read_graph(const Vector<int64_t>& colours, const Vector<int64_t>& starts, const Vector<int32_t>& sites) {
    const Size p = Size(starts.shape(0)) - 1;
    require(p >= 1, "there are no sites");
    require_ranges(colours, p, "the colours do not cover the sites");
    require_ranges(starts, int64_t(sites.shape(0)), "the neighbour lists do not cover the neighbours");
    for (size_t e = 0; e < sites.shape(0); ++e)
        require(sites.data()[e] >= 0 && sites.data()[e] < p, "a neighbour is not a site");
    return {p, colours.data(), Size(colours.shape(0)) - 1, starts.data(), sites.data()};
}

template <class Block>
void run(const typename Block::Model& model, Out<typename Block::Code>& out, Size chains, Size burn_in, Size thin,
         uint64_t seed) {
    require(Size(out.shape(1)) == model.graph.p, "out has a wrong shape");
    require(chains >= 1 && burn_in >= 0 && thin >= 1, "chains, burn_in or thin is out of range");
    auto* rows = out.data();
    const Plan plan{Size(out.shape(0)), chains, burn_in, thin, seed};
    nb::gil_scoped_release nogil;
    sample<Block>(model, plan, rows, [] {
        nb::gil_scoped_acquire gil;  // long runs heed Ctrl-C
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    });
}

void gibbs_ising(Vector<double> fields, Vector<double> couplings, Vector<int64_t> colours, Vector<int64_t> starts,
                 Vector<int32_t> sites, Out<int8_t> out, Size chains, Size burn_in, Size thin, uint64_t seed) {
    const IsingBlock::Model model{read_graph(colours, starts, sites), fields.data(), couplings.data()};
    require(Size(fields.shape(0)) == model.graph.p && couplings.shape(0) == sites.shape(0),
            "fields or couplings have a wrong length");
    run<IsingBlock>(model, out, chains, burn_in, thin, seed);
}

void gibbs_potts(Vector<double> fields, Matrix couplings, Vector<int64_t> offsets, Vector<int64_t> colours,
                 Vector<int64_t> starts, Vector<int32_t> sites, Out<int32_t> out, Size chains, Size burn_in, Size thin,
                 uint64_t seed) {
    const PottsBlock::Model model{read_graph(colours, starts, sites), offsets.data(), fields.data(),
                                            couplings.data()};
    require(Size(offsets.shape(0)) == model.graph.p + 1, "offsets have a wrong length");
    require_ranges(offsets, int64_t(fields.shape(0)), "the offsets do not cover the fields");
    for (Size j = 0; j < model.graph.p; ++j) require(offsets.data()[j] < offsets.data()[j + 1], "a site has no states");
    require(couplings.shape(0) == fields.shape(0) && couplings.shape(1) == fields.shape(0),
            "couplings have a wrong shape");
    run<PottsBlock>(model, out, chains, burn_in, thin, seed);
}

}  // namespace

void bind_gibbs(nb::module_& m) {
    m.def("gibbs_ising", &gibbs_ising, nb::arg("fields"), nb::arg("couplings"), nb::arg("colours"), nb::arg("starts"),
          nb::arg("sites"), nb::arg("out"), nb::arg("chains"), nb::arg("burn_in"), nb::arg("thin"), nb::arg("seed"),
          "Codes of states (0 for -1, 1 for +1) of an Ising model into `out`; row d * chains + c is draw d of chain c.");
    m.def("gibbs_potts", &gibbs_potts, nb::arg("fields"), nb::arg("couplings"), nb::arg("offsets"), nb::arg("colours"),
          nb::arg("starts"), nb::arg("sites"), nb::arg("out"), nb::arg("chains"), nb::arg("burn_in"), nb::arg("thin"),
          nb::arg("seed"), "The same for a Potts model with `couplings` (P, P).");
}

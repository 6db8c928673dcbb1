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
         uint64_t seed, const Named& options) {
    using Code = typename Block::Code;
    static const double one = 1.0;
    const Size p = model.graph.p, n_betas = options.has("betas") ? options.length("betas") : 1;
    require(Size(out.shape(1)) == p, "out has a wrong shape");
    require(chains >= 1 && burn_in >= 0 && thin >= 1, "chains, burn_in or thin is out of range");
    require(n_betas >= 1 && n_betas <= 256, "there must be 1 to 256 betas");
    const auto array = [&]<class T>(const char* name, std::initializer_list<Size> shape, T* none) {
        return options.has(name) ? options.array<T>(name, shape) : none;
    };
    Code* const absent = nullptr;
    const Plan<Code> plan{Size(out.shape(0)), chains, burn_in, thin, seed, array("betas", {n_betas}, &one), n_betas,
                          out.data(), array("halfway", {chains, p}, absent),
                          array("start", {chains, n_betas, p}, (const Code*)absent),
                          array("ends", {chains, n_betas, p}, absent),
                          array("rejected", {n_betas - 1}, (double*)nullptr),
                          array("trips", {chains}, (int64_t*)nullptr)};
    for (Size i = 0; plan.start && i < chains * n_betas * p; ++i)
        require(plan.start[i] >= 0 && plan.start[i] < Block::states(model, i % p), "start holds a code that is none");
    nb::gil_scoped_release nogil;
    sample<Block>(model, plan, [] {
        nb::gil_scoped_acquire gil;  // long runs heed Ctrl-C
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    });
}

void gibbs_ising(Vector<double> fields, Vector<double> couplings, Vector<int64_t> colours, Vector<int64_t> starts,
                 Vector<int32_t> sites, Out<int8_t> out, Size chains, Size burn_in, Size thin, uint64_t seed,
                 nb::dict options) {
    const IsingBlock::Model model{read_graph(colours, starts, sites), fields.data(), couplings.data()};
    require(Size(fields.shape(0)) == model.graph.p && couplings.shape(0) == sites.shape(0),
            "fields or couplings have a wrong length");
    run<IsingBlock>(model, out, chains, burn_in, thin, seed, Named("options", options));
}

void gibbs_potts(Vector<double> fields, Matrix couplings, Vector<int64_t> offsets, Vector<int64_t> colours,
                 Vector<int64_t> starts, Vector<int32_t> sites, Out<int32_t> out, Size chains, Size burn_in, Size thin,
                 uint64_t seed, nb::dict options) {
    const PottsBlock::Model model{read_graph(colours, starts, sites), offsets.data(), fields.data(),
                                            couplings.data()};
    require(Size(offsets.shape(0)) == model.graph.p + 1, "offsets have a wrong length");
    require_ranges(offsets, int64_t(fields.shape(0)), "the offsets do not cover the fields");
    for (Size j = 0; j < model.graph.p; ++j) require(offsets.data()[j] < offsets.data()[j + 1], "a site has no states");
    require(couplings.shape(0) == fields.shape(0) && couplings.shape(1) == fields.shape(0),
            "couplings have a wrong shape");
    run<PottsBlock>(model, out, chains, burn_in, thin, seed, Named("options", options));
}

}  // namespace

void bind_gibbs(nb::module_& m) {
    m.def("gibbs_ising", &gibbs_ising, nb::arg("fields"), nb::arg("couplings"), nb::arg("colours"), nb::arg("starts"),
          nb::arg("sites"), nb::arg("out"), nb::arg("chains"), nb::arg("burn_in"), nb::arg("thin"), nb::arg("seed"),
          nb::arg("options") = nb::dict(),
          "Codes of states (0 for -1, 1 for +1) of an Ising model into `out`; row d * chains + c is draw d of chain c. "
          "Options are arrays of a Plan: betas, halfway, start, ends, rejected, trips.");
    m.def("gibbs_potts", &gibbs_potts, nb::arg("fields"), nb::arg("couplings"), nb::arg("offsets"), nb::arg("colours"),
          nb::arg("starts"), nb::arg("sites"), nb::arg("out"), nb::arg("chains"), nb::arg("burn_in"), nb::arg("thin"),
          nb::arg("seed"), nb::arg("options") = nb::dict(), "The same for a Potts model with `couplings` (P, P).");
}

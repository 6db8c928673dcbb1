// Python's door to the Gibbs samplers: checks and hands over arrays.
#include "gibbs.hpp"

#include "arguments.hpp"

namespace {

using namespace bregpath;

// A wrong index would read foreign memory, so all are checked.
const int64_t* read_ranges(const Named& from, const char* name, Size end, const char* what) {
    const Size count = from.length(name);
    const int64_t* bounds = from.array<const int64_t>(name, {count});
    require(count > 0 && bounds[0] == 0 && bounds[count - 1] == end && std::is_sorted(bounds, bounds + count), what);
    return bounds;
}

Graph read_graph(const Named& from) {
    const Size p = from.length("starts") - 1, neighbours = from.length("sites");
    require(p >= 1, "there are no sites");
    const int32_t* sites = from.array<const int32_t>("sites", {neighbours});
    require(std::all_of(sites, sites + neighbours, [p](int32_t j) { return j >= 0 && j < p; }),
            "a neighbour is not a site");
    return {p, read_ranges(from, "colours", p, "the colours do not cover the sites"), from.length("colours") - 1,
            read_ranges(from, "starts", neighbours, "the neighbour lists do not cover the neighbours"), sites};
}

template <class Block>
void run(const typename Block::Model& model, const Named& from) {
    using Code = typename Block::Code;
    static const double one = 1.0;
    const Named options("options", from.get<nb::dict>("options"));
    const Size n = from.length("out"), p = model.graph.p, n_betas = options.has("betas") ? options.length("betas") : 1;
    const Size chains = from.get<Size>("chains"), burn_in = from.get<Size>("burn_in"), thin = from.get<Size>("thin");
    require(from.length("out", 1) == p, "out has a wrong shape");
    require(chains >= 1 && burn_in >= 0 && thin >= 1, "chains, burn_in or thin is out of range");
    require(n_betas >= 1 && n_betas <= 256, "there must be 1 to 256 betas");
    const auto array = [&]<class T>(const char* name, std::initializer_list<Size> shape, T* none) {
        return options.has(name) ? options.array<T>(name, shape) : none;
    };
    Code* const absent = nullptr;
    const Plan<Code> plan{n, chains, burn_in, thin, from.get<uint64_t>("seed"), array("betas", {n_betas}, &one), n_betas,
                          from.array<Code>("out", {n, p}), array("halfway", {chains, p}, absent),
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

void gibbs_ising(nb::kwargs arguments) {
    const Named from("gibbs_ising", arguments);
    const Graph graph = read_graph(from);
    run<IsingBlock>({graph, from.numbers("fields", {graph.p}), from.numbers("couplings", {from.length("sites")})}, from);
}

void gibbs_potts(nb::kwargs arguments) {
    const Named from("gibbs_potts", arguments);
    const Graph graph = read_graph(from);
    const Size states = from.length("fields");
    const int64_t* offsets = read_ranges(from, "offsets", states, "the offsets do not cover the fields");
    require(from.length("offsets") == graph.p + 1, "offsets have a wrong length");
    for (Size j = 0; j < graph.p; ++j) require(offsets[j] < offsets[j + 1], "a site has no states");
    run<PottsBlock>({graph, offsets, from.numbers("fields", {states}), from.numbers("couplings", {states, states})}, from);
}

}  // namespace

void bind_gibbs(nb::module_& m) {
    m.def("gibbs_ising", &gibbs_ising,
          "Codes of states (0 for -1, 1 for +1) of an Ising model into `out`; row d * chains + c is draw d of chain c. "
          "Arrays `fields`, `couplings` (one a neighbour), `colours`, `starts`, `sites`; numbers `chains`, `burn_in`, "
          "`thin`, `seed`; `options` are arrays of a Plan: betas, halfway, start, ends, rejected, trips.");
    m.def("gibbs_potts", &gibbs_potts, "The same for a Potts model with `couplings` (P, P) and `offsets` of its sites.");
}

// The Python module bregpath._kernels._core: chooses the instruction set and names what there is.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "kernels.hpp"

namespace nb = nanobind;

void bind_gibbs(nb::module_& m);                                      // gibbs.cpp
void bind_stepper(nb::module_& m, const bregpath::Kernels* kernels);  // stepper_binding.cpp
void bind_inverse_scale_space(nb::module_& m, const bregpath::Kernels* kernels);  // inverse_scale_space.cpp
void bind_exponential(nb::module_& m, const bregpath::Kernels* kernels);          // exponential.cpp
void bind_lines(nb::module_& m);                                                  // lines.cpp
void bind_reading(nb::module_& m, const bregpath::Kernels* kernels);              // reading.cpp
void bind_screening(nb::module_& m, const bregpath::Kernels* kernels);            // screening.cpp
void bind_scores(nb::module_& m, const bregpath::Kernels* kernels);               // scores.cpp

namespace {

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
    const std::string isa(text == nullptr || *text == '\0' ? "v4" : text);
    if (isa == "base") return 0;
    if (isa == "v3") return 3;
    if (isa == "v4") return 4;
    throw std::runtime_error("BREGPATH_ISA must be 'base', 'v3' or 'v4', found '" + isa + "'");
}

const bregpath::Kernels* choose_kernels() {
    [[maybe_unused]] const int level = std::min(wanted_level(), processor_level());
#ifdef BREGPATH_X86_LEVELS
    if (level >= 4) return bregpath_kernels_v4();
    if (level >= 3) return bregpath_kernels_v3();
#endif
    return bregpath_kernels_base();
}

}  // namespace

NB_MODULE(_core, m) {
    const bregpath::Kernels* kernels = choose_kernels();
    m.doc() = "Compiled kernels of bregpath.";
    m.def("isa", [kernels] { return kernels->isa; }, "Instruction set in use: 'base', 'v3' or 'v4'.");
    bind_gibbs(m);
    bind_stepper(m, kernels);
    bind_inverse_scale_space(m, kernels);
    bind_exponential(m, kernels);
    bind_lines(m);
    bind_reading(m, kernels);
    bind_screening(m, kernels);
    bind_scores(m, kernels);
}

// The door between the bindings and the kernels: a table of plain function pointers.
//
// kernels_isa.cpp is compiled once for each instruction set, and every copy fills one table. The
// bindings pick a table at load time and afterwards call through it only.
//
// Rule for kernels_isa.cpp: everything in it is `static`, in an anonymous namespace (templates too), or
// extern "C" with the instruction set in its name. The linker keeps one copy of an inline function or a
// template with external linkage (std::vector, std::sort, ...), and a baseline caller could then run
// AVX-512 code. So allocate outside and pass pointers in.
#pragma once

namespace bregpath {

struct Kernels {
    const char* isa;                                  // "base", "v3" or "v4"
    double (*probe)(const double* x, long n);         // sum of x: shows that the dispatch works
};

}  // namespace bregpath

extern "C" {
const bregpath::Kernels* bregpath_kernels_base();
const bregpath::Kernels* bregpath_kernels_v3();       // x86-64-v3: AVX2, FMA
const bregpath::Kernels* bregpath_kernels_v4();       // x86-64-v4: AVX-512 F, BW, CD, DQ, VL
}

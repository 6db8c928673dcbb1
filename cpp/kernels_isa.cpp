// The kernels, compiled once for each instruction set with -DBREGPATH_ISA=base|v3|v4.
// Only static or extern "C" code here: see the rule in kernels.hpp.
#include "kernels.hpp"

#ifndef BREGPATH_ISA
#define BREGPATH_ISA base
#endif
#define BREGPATH_JOIN_(name, isa) name##_##isa
#define BREGPATH_JOIN(name, isa) BREGPATH_JOIN_(name, isa)
#define BREGPATH_NAME(name) BREGPATH_JOIN(name, BREGPATH_ISA)   // name -> name_v3
#define BREGPATH_TEXT_(isa) #isa
#define BREGPATH_TEXT(isa) BREGPATH_TEXT_(isa)

extern "C" double BREGPATH_NAME(bregpath_probe)(const double* x, long n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < n; ++i) sum += x[i];
    return sum;
}

extern "C" const bregpath::Kernels* BREGPATH_NAME(bregpath_kernels)() {
    static constexpr bregpath::Kernels table{
        .isa = BREGPATH_TEXT(BREGPATH_ISA),
        .probe = BREGPATH_NAME(bregpath_probe),
    };
    return &table;
}

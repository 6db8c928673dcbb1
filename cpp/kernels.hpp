// The door between the stepper and the kernels: a table of plain function pointers.
//
// kernels_isa.cpp is compiled once for each instruction set, and every copy fills one table. The
// bindings pick a table at load time and afterwards call through it only.
//
// Rule for kernels_isa.cpp: everything in it is `static`, in an anonymous namespace (templates too), or
// extern "C" with the instruction set in its name. The linker keeps one copy of an inline function or a
// template with external linkage (std::vector, std::sort, ...), and a baseline caller could then run
// AVX-512 code. So allocate outside and pass pointers in.
//
// Arrays over rows are stored output by output: eta[l * n + i]. So are those over columns: beta[l * k + c].
#pragma once

#include <cstdint>

namespace bregpath {

// `user` losses are evaluated by callbacks of the stepper, never by a kernel.
enum class Loss : int { gaussian = 0, logistic = 1, poisson = 2, huber = 3, multinomial = 4, user = 5, flow = 6 };

// Columns of a design: dense ones by their addresses, or sparse ones (CSC) with implicit centring and scaling.
struct Columns {
    long n;
    int k;
    const double* const* dense;    // k addresses of n numbers, or null
    const double* const* values;   // sparse: k addresses of stored values ...
    const int32_t* const* rows;    // ... of their rows ...
    const long* counts;            // ... and how many there are
    const double* center;          // sparse: (k), subtracted from every entry of a column
    const double* scale;           // sparse: (k), divides the column
};

struct Data {
    Loss loss;
    double parameter;              // threshold of the Huber loss
    int q;                         // outputs
    const double* y;               // (n), class numbers for multinomial
    const double* w;               // (n), sums to one
    const double* offset;          // (q, n) or null
};

struct Kernels {
    const char* isa;               // "base", "v3" or "v4"
    // eta = alpha + X beta + offset, r = d loss / d eta, g = X' r; returns the loss when wanted, else 0.
    double (*gradient)(const Columns&, const Data&, const double* alpha, const double* beta, double* eta, double* r,
                       double* g, bool want_value);
    // eta = alpha + X beta + offset alone.
    void (*predict)(const Columns&, const Data&, const double* alpha, const double* beta, double* eta);
    // What `bend` needs at eta: second derivatives, or class probabilities for multinomial.
    void (*curvature)(const Data&, long n, const double* eta, double* h);
    // u = H u with H the curvature of the loss.
    void (*bend_rows)(const Data&, long n, const double* h, double* u);
    // u = H (v0 + X v) with H the curvature of the loss; g = X' u and g0 = 1' u.
    void (*bend)(const Columns&, const Data&, const double* h, const double* v0, const double* v, double* u, double* g,
                 double* g0);
    // a = X' u and b = X' v for two vectors of q outputs at once.
    void (*dots)(const Columns&, int q, const double* u, const double* v, double* a, double* b);
    // out[l * k + c] = x_c' u_l for all of k columns and q vectors of n numbers.
    void (*cross)(const double* const* x, int k, const double* const* u, int q, long n, double* out);
    // Sums over the rows, one an output.
    void (*totals)(long n, int q, const double* r, double* out);
    // out = c0 a0 + c1 a1 + c2 a2 + c3 a3 + c4 a4: a stage of the Runge-Kutta-Chebyshev recursion.
    void (*combine)(long size, const double* c, const double* const* a, double* out);
};

}  // namespace bregpath

extern "C" {
const bregpath::Kernels* bregpath_kernels_base();
const bregpath::Kernels* bregpath_kernels_v3();       // x86-64-v3: AVX2, FMA
const bregpath::Kernels* bregpath_kernels_v4();       // x86-64-v4: AVX-512 F, BW, CD, DQ, VL
}

// The door between the rows and the kernels: a table of plain function pointers.
//
// kernels_isa.cpp is compiled once for each instruction set, and every copy fills one table. The
// bindings pick a table at load time and afterwards call through it only.
//
// Rule for kernels_isa.cpp and what it includes: everything in it is `static`, in an anonymous namespace (templates
// too), or extern "C" with the instruction set in its name. The linker keeps one copy of an inline function or a
// template with external linkage (std::vector, std::sort, ...), and a baseline caller could then run
// AVX-512 code. So allocate outside and pass pointers in.
//
// Arrays over rows are stored output by output: eta[l * n + i]. So are those over columns: beta[l * k + c].
#pragma once

#include <cstdint>

namespace bregpath {

using Size = std::int64_t;

// `user` losses are evaluated by callbacks of the rows, never by a kernel.
enum class Loss : int { gaussian, logistic, poisson, huber, multinomial, ising_flow, user };

// A column of a design: n numbers, or (CSC) those that are stored, with implicit centring and scaling.
struct Column {
    const double* values;
    const int32_t* rows = nullptr;  // sparse: of the stored values, each once ...
    Size count = 0;                 // ... and how many there are
    double center = 0, scale = 1;   // subtracted from every entry, and divides the column: sparse, and of gram()
    bool is_indicator = false;      // sparse: all that is stored is one and the same number
};

// Columns that store one number each, by the sets of them that occur in a row, their patterns. Pattern 0 is empty, any
// other one has an earlier one, its parent, and one column more. See patterns.hpp.
constexpr Size kMostPatterns = 2048;
constexpr Size kPatternCopies = 4;  // of sums over patterns, side by side

struct PatternColumn {
    Size end;                       // its patterns end here, and begin where those of the column before end
    Size place;                     // among the columns of the product, or -1
};

struct Patterns {
    const uint16_t* of_row;         // (n)
    const uint16_t* parent;         // (count)
    Size count;
    const PatternColumn* columns;   // (k)
    Size k;
};

struct Columns {
    Size n, k;
    const Column* at;               // (k) addresses
    bool is_dense;
    Size n_groups = 0;              // of columns that are there by their patterns, and for themselves without rows
    const Patterns* groups = nullptr;
    double* room = nullptr;         // for 2 * kPatternCopies * kMostPatterns numbers
};

// Dense columns in panels: some rows of one column after the other, then the next rows. A product with all of them, and one with
// their transpose, reads what lies side by side, and a panel is still in the cache when it is read again.
constexpr Size kPanelRows = 32, kPanelLanes = 8;

struct Panels {
    Size n, k, stride;             // stride: from one panel to the next
    const double* numbers;
    const int32_t* at;             // (k) places of the columns in a panel
};

struct Data {
    Loss loss;
    double threshold;              // of the Huber loss
    Size q;                        // outputs
    const double* y;               // (n), class numbers for multinomial
    const double* w;               // (n), sums to one
    const double* offset;          // (q, n) or null
};

// Rows of a node with states: of each row of the data the states of some other nodes, the sources. See state_kernels.hpp.
constexpr Size kStateLanes = 4;    // the number of states is padded to a multiple of this: the width of tiles and tables

struct States {
    Size m, sources, width;
    const int32_t* const* states;  // of each source, (m)
};

// Spins of groups of nodes as patterns. See spin_kernels.hpp.
constexpr Size kSpinLanes = 8;     // nodes whose predictors lie side by side
constexpr Size kSpinGroup = 6, kSpinPatterns = 64;

struct SpinPatterns {
    Size m, groups;
    const std::uint8_t* const* of;  // of each group, (m)
};

// Rows of one group in the order of their patterns, four of the same one at a time: a row of zeros fills the rest.
struct RowsByPattern {
    Size fours;
    const int32_t* rows;            // (fours, 4)
    const std::uint8_t* patterns;   // (fours)
    const double* goes_on;          // (fours): 1 where the four before had the same pattern, else 0
    Size absent;
    const std::uint8_t* absentees;  // (absent): patterns without rows
};

constexpr Size kMostDirections = 32;  // of a basis

constexpr Size kPivots = 24;  // swept together: whole lines of eight
constexpr Size sweep_room(Size p) { return ((p + 7) & ~Size{7}) * (((p + 7) & ~Size{7}) + 2 * kPivots); }

struct Kernels {
    const char* isa;               // "base", "v3" or "v4"
    // eta = alpha + X beta + offset, r = d loss / d eta, g = X' r; returns the loss when wanted, else 0.
    double (*gradient)(const Columns&, const Data&, const double* alpha, const double* beta, double* eta, double* r,
                       double* g, bool want_value);
    // eta = alpha + X beta + offset alone.
    void (*predict)(const Columns&, const Data&, const double* alpha, const double* beta, double* eta);
    // The loss, and r, at eta.
    double (*loss)(const Data&, Size n, const double* eta, double* r);
    // What the next one takes as the curvature H at eta: second derivatives, or class probabilities for multinomial.
    void (*curvature)(const Data&, Size n, const double* eta, double* h);
    // u = H (v0 + X v), g = X' u and g0 = 1' u: a product with the Hessian.
    void (*hessian)(const Columns&, const Data&, const double* h, const double* v0, const double* v, double* u,
                    double* g, double* g0);
    // The same two with panels; there is room for kPanelLanes numbers of each g in `lanes`.
    double (*panel_gradient)(const Panels&, const Data&, const double* alpha, const double* beta, double* eta, double* r,
                             double* g, double* lanes, bool want_value);
    void (*panel_hessian)(const Panels&, const Data&, const double* h, const double* v0, const double* v, double* u,
                          double* g, double* g0, double* lanes);
    // out[l * k + c] = x_c' u_l for q vectors of n numbers.
    void (*dots)(const Columns&, const double* const* u, Size q, double* out);
    // The same of dense columns with a multiple of eight vectors; a run of so many rows of them has room in `run`.
    void (*many_dots)(const Columns&, const double* const* u, Size q, double* run, Size rows, double* out);
    // Sums over the rows, one an output.
    void (*totals)(Size n, Size q, const double* r, double* out);
    // With d = R - end, weighted inner products: d'd, d'r, r'r, d'last and r'last.
    void (*lengths)(Size n, const double* R, const double* r, const double* end, const double* last, const double* w,
                    double* out);
    // Tiles of a node with states: eta = alpha + the rows of the tables that the states choose.
    void (*predict_states)(const States&, const double* const* tables, const double* alpha, double* eta);
    // The rows of a tile, added to the rows of the tables that the states choose.
    void (*add_states)(const States&, const double* r, double* const* tables);
    // The loss, if wanted; eta becomes r.
    double (*loss_states)(const States&, const Data&, double* eta, bool want_value);
    // eta becomes the probabilities of q states, by which H is u = H u.
    void (*share_states)(Size q, Size width, Size m, double* eta);
    void (*curve_states)(const States&, const Data&, const double* share, double* u);
    // Eight nodes, side by side in (m, 8): beta (6, 8) as a table (64, 8), and eta = alpha + the rows of one table a
    // group that the patterns choose.
    void (*make_spin_table)(const double* beta, double* table);
    void (*predict_spins)(const SpinPatterns&, const double* tables, const double* alpha, double* eta);
    // Adds X'u and X'v of the six spins of a group and of a constant, (7, 8) each.
    void (*add_spins)(const RowsByPattern&, const double* u, const double* v, double* of_u, double* of_v);
    // u = h u + length r, and R_next = R + u.
    void (*integrate_rows)(Size, const double* h, const double* r, double length, double* u, const double* R,
                           double* R_next);
    // Logistic loss but for w log(factors), which are multiplied by what eta adds; eta becomes r if wanted.
    double (*logistic_spins)(Size, const double* y, const double* w, double* eta, double* factors, bool want_residual);
    double (*log_factors)(Size, const double* w, const double* factors);
    // out = h x, number by number.
    void (*weigh)(Size, const double* h, const double* x, double* out);
    // A symmetric matrix times a vector, padded to multiples of eight.
    void (*symmetric_product)(Size size, const double* matrix, Size stride, const double* v, double* out);
    // To such a matrix, the square of a vector, times a factor.
    void (*change_by_square)(Size size, double factor, const double* v, double* matrix, Size stride);
    // Lanczos' method with such a matrix: direction k < kMostDirections of a basis, from what is left of a product with the one
    // before and its length; then what is left of the product with direction k, its `corner`, and the length as the result.
    double (*next_direction)(Size size, const double* matrix, Size stride, double* basis, Size k, double before, double* left,
                             double* corner);
    // Sums of k rows, a multiple of eight numbers each, one for each of `sums` sets of shares, which are `apart` from each other.
    void (*combine_rows)(const double* rows, Size size, Size k, const double* shares, Size apart, Size sums, double* out);
    // The integral of exp(-rate tau) of k rates, and that of the integral.
    void (*decay)(Size k, const double* rates, double tau, double* change, double* past);
    // Coordinates at rest after a time; by how much the farthest is beyond its bounds.
    void (*coast)(Size m, double time, const double* z, const double* slope, Size k, const double* images, const double* change,
                  const double* past, const double* mean, double change_of_mean, double past_of_mean, double* z_then,
                  double* slope_then);
    double (*farthest)(Size m, const double* z, const double* low, const double* high);
    // out = c0 a0 + c1 a1 + c2 a2 + c3 a3 + c4 a4: a stage of the Runge-Kutta-Chebyshev recursion.
    void (*combine)(Size size, const double* c, const double* const* a, double* out);
    // to += factor x.
    void (*add)(Size size, double factor, const double* x, double* to);
    // Of a symmetric tridiagonal matrix of k <= kMostDirections: `diagonal` becomes its eigenvalues, `axes` its eigenvectors, one
    // after the other, padded with zeros to a multiple of eight.
    void (*diagonalise)(Size k, double* diagonal, double* off, double* axes);
    // Of a positive definite matrix, of which the part from the diagonal on counts, row by row: the logarithm of the determinant,
    // -infinity if it is not one, and the inverse in its place if wanted. Needs sweep_room(p).
    double (*sweep)(Size p, double* matrix, Size stride, bool inverse, double* room);
    // Products of dense columns, a multiple of four, with each other, added to one half of `out` (k, k) at least: each is less
    // its center, over its scale, and times the roots of weights. A run of so many rows of all of them has room in `run`.
    void (*gram)(const Columns&, const double* root, double* run, Size rows, double* out);
    // How many numbers are beyond their thresholds where they were not (active is 0), or no longer (1).
    Size (*crossings)(Size m, const double* x, const double* threshold, const double* active);
    // Coefficients inside a step, at a time to which its ends have `shares`: z (and the end's), slope, and less that of the end;
    // zero where z is within its threshold at both ends, unless there is none.
    void (*shrink_cubics)(Size m, const double* shares, const double* z, const double* z_end, const double* slope,
                          const double* slope_end, const double* weights, double kappa, double* beta);
    // A row of a matrix: out = ((whole - lost) / share - mine * moved) * factor * factors.
    void (*lessen)(Size p, const double* whole, const double* lost, double share, double mine, const double* moved, double factor,
                   const double* factors, double* out);
    // Mean and variance of n numbers with weights that sum to one.
    void (*spread)(Size n, const double* x, const double* w, double* mean, double* variance);
};

}  // namespace bregpath

extern "C" {
const bregpath::Kernels* bregpath_kernels_base();
const bregpath::Kernels* bregpath_kernels_v3();       // x86-64-v3: AVX2, FMA
const bregpath::Kernels* bregpath_kernels_v4();       // x86-64-v4: AVX-512 F, BW, CD, DQ, VL
}

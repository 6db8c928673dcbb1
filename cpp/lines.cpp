// Lines through the knots of curves, the twin of _kernels/lines.py.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "arguments.hpp"

namespace {

using namespace bregpath;

struct Points {
    std::vector<int32_t> column;
    std::vector<int16_t> row;
    std::vector<double> numbers;  // of each the same number

    void put(Size j, Size at, std::initializer_list<double> what) {
        column.push_back(int32_t(j)), row.push_back(int16_t(at)), numbers.insert(numbers.end(), what);
    }
};


// The line of one curve that is being drawn.
struct Line {
    double &t, &value;
    int64_t& row;
    double &low, &high;
    bool holds;

    double at(double time) const { return value + (holds ? 1.0 : time - t) * 0.5 * (low + high); }

    void begin(Size at_row, double time, double from) {
        t = time, value = holds ? 0.0 : from, row = at_row;
        low = -std::numeric_limits<double>::infinity(), high = -low;
    }

    // Whether a line still passes a knot.
    bool pass(double time, double knot, double slack) {
        const double lever = holds ? 1.0 : time - t, middle = (knot - value) / lever, half = slack / lever;
        const double lowest = std::max(low, middle - half), highest = std::min(high, middle + half);
        if (lowest > highest) return false;
        low = lowest, high = highest;
        return true;
    }
};

// How far a cubic is at most from the line between its ends.
double bend_of(double start, double end) { return 0.25 * std::max(std::abs(start), std::abs(end)); }

template <class T>
nb::object as_array(const std::vector<T>& from, size_t width) {
    T* copy = new T[std::max<size_t>(from.size(), 1)];
    std::copy(from.begin(), from.end(), copy);
    nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    const size_t shape[2] = {from.size() / width, width};
    return nb::cast(nb::ndarray<nb::numpy, T>(copy, width > 1 ? 2 : 1, shape, owner));
}

nb::object as_arrays(const Points& points, size_t width) {
    return nb::make_tuple(as_array(points.column, 1), as_array(points.row, 1), as_array(points.numbers, width));
}

nb::object draw(nb::dict arrays, double error, bool holds, bool is_cubic, Size first) {
    const Named from("the knots", arrays);
    const Size d = from.length("t"), c = from.length("value", 1);
    require(d >= 2 && first >= 0 && first + d <= 32767, "too few knots, or too many");
    const double *t = from.numbers("t", {d}), *trust = from.numbers("trust", {d - 1});
    const double *value = from.numbers("value", {d, c}), *slope = from.numbers("slope", {d, c});
    const double* room = from.numbers("room", {d, c});
    double *line_t = from.array<double>("line_t", {c}), *line_value = from.array<double>("line_value", {c}),
           *low = from.array<double>("low", {c}), *high = from.array<double>("high", {c});
    int64_t* line_row = from.array<int64_t>("line_row", {c});
    Points points, cubics;
    {
        nb::gil_scoped_release nogil;
        for (Size j = 0; j < c; ++j) {
            Line line{line_t[j], line_value[j], line_row[j], low[j], high[j], holds};
            for (Size k = 0; k + 1 < d; ++k) {
                const Size i = k * c + j, next = i + c, row = first + k;
                const bool moves = room[i] > 0, will_move = room[next] > 0;
                if (!moves && !will_move) continue;
                const double h = (t[k + 1] - t[k]) * trust[k], rise = value[next] - value[i];
                const double bend = is_cubic ? bend_of(h * slope[i] - rise, h * slope[next] - rise) : 0.0;
                if (moves != will_move || bend > 0.5 * error) {
                    if (line.row != row)
                        points.put(j, moves ? row : ~row, {moves ? line.at(t[k]) : value[i]});
                    points.put(j, will_move ? row + 1 : ~(row + 1), {value[next]});
                    if (!holds) cubics.put(j, row, {value[i], slope[i], slope[next]});
                    line.begin(row + 1, t[k + 1], value[next]);
                    continue;
                }
                const double slack = std::min(std::max(error - bend, 0.5 * error), 0.5 * room[next]);
                if (line.pass(t[k + 1], value[next], slack)) continue;
                const double end = line.at(t[k]);
                points.put(j, row, {end});
                line.begin(row, t[k], end);
                line.pass(t[k + 1], value[next], slack);
            }
        }
    }
    return nb::make_tuple(as_arrays(points, 1), as_arrays(cubics, 3));
}

}  // namespace

// Give memory that is free back to the system, also from between what is in use.
void give_back() {
#if defined(__GLIBC__)
    nb::gil_scoped_release nogil;
    malloc_trim(0);
#endif
}

void bind_lines(nb::module_& m) {
    m.def("give_back", &give_back);
    m.def("draw", &draw, nb::arg("arrays"), nb::arg("error"), nb::arg("holds"), nb::arg("is_cubic"), nb::arg("first"));
}

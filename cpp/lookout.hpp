// Ctrl-C during work that is done without the interpreter lock.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <utility>

namespace bregpath {

namespace nb = nanobind;

// Looks every so often, between two pieces of work, whether to go on, and throws what Python raises if not: signals reach
// the main thread only, so `check` speaks to the others. For little work not even the clock is read.
class Lookout {
   public:
    explicit Lookout(nb::callable check) : check(std::move(check)) {}

    void operator()(double work) {
        work_ += work;
        if (work_ < kWork) return;
        work_ = 0;
        const auto now = Clock::now();
        if (now - last_ < kPause) return;
        last_ = now;
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        check();
    }

    nb::object check;

   private:
    using Clock = std::chrono::steady_clock;
    static constexpr double kWork = 1 << 18;  // products of two numbers: a fraction of a millisecond
    static constexpr std::chrono::milliseconds kPause{50};

    double work_ = 0;
    Clock::time_point last_ = Clock::now();
};

}  // namespace bregpath

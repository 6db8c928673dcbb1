// Arguments from Python by name: arrays are taken as they are or refused, never copied.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels.hpp"

namespace bregpath {

namespace nb = nanobind;

inline void require(bool condition, const char* what) {
    if (!condition) throw std::invalid_argument(what);
}

// A dictionary whose arrays are used as long as it is kept.
class Named {
   public:
    Named(std::string what, nb::dict values) : what_(std::move(what)), values_(std::move(values)) {}

    bool has(const char* name) const { return values_.contains(name) && !nb::object(values_[name]).is_none(); }

    template <class T>
    T get(const char* name) const {
        if (!has(name)) refuse(name, "is missing");
        T value{};
        if (!nb::try_cast(nb::object(values_[name]), value, std::is_arithmetic_v<T>)) refuse(name, "is of a wrong kind");
        return value;
    }

    // The numbers of an array of this shape, in C order unless told.
    template <class T, class Order = nb::c_contig>
    T* array(const char* name, std::initializer_list<Size> shape) const {
        const auto array = get<nb::ndarray<T, Order, nb::device::cpu>>(name);
        bool fits = array.ndim() == shape.size();
        for (size_t i = 0; fits && i < shape.size(); ++i) fits = Size(array.shape(i)) == shape.begin()[i];
        if (!fits) refuse(name, "has a wrong shape");
        return array.data();
    }

    const double* numbers(const char* name, std::initializer_list<Size> shape) const {
        return array<const double>(name, shape);
    }

    // A square matrix whose rows may lie further apart than they are long.
    std::pair<const double*, Size> square(const char* name, Size size) const {
        const auto matrix = get<nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>>(name);
        const bool fits = Size(matrix.shape(0)) == size && Size(matrix.shape(1)) == size;
        if (!fits || (size > 1 && matrix.stride(1) != 1)) refuse(name, "has a wrong shape");
        return {matrix.data(), matrix.stride(0)};
    }

    Size length(const char* name, size_t axis = 0) const {
        const auto array = get<nb::ndarray<nb::ro, nb::device::cpu>>(name);
        if (axis >= array.ndim()) refuse(name, "has a wrong shape");
        return Size(array.shape(axis));
    }

   private:
    [[noreturn]] void refuse(const char* name, const char* why) const {
        throw std::invalid_argument(what_ + ": `" + name + "` " + why);
    }

    std::string what_;
    nb::dict values_;
};

}  // namespace bregpath

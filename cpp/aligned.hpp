// Numbers that begin where a cache line does: eight at a time are then read from one line, not from two.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace bregpath {

template <class T>
struct AlignedAllocator {
    using value_type = T;
    static constexpr std::align_val_t line{64};

    AlignedAllocator() = default;
    template <class U>
    AlignedAllocator(const AlignedAllocator<U>&) {}
    // Numbers that are not given are not set: what is never written takes no memory.
    template <class U>
    void construct(U* at) { ::new (static_cast<void*>(at)) U; }
    template <class U, class V>
    void construct(U* at, V&& value) { ::new (static_cast<void*>(at)) U(value); }
    T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), line)); }
    void deallocate(T* at, std::size_t) { ::operator delete(at, line); }
    friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

using Aligned = std::vector<double, AlignedAllocator<double>>;

}  // namespace bregpath

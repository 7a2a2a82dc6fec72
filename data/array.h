// A growable array of plain values that does not initialize memory. On Linux, arrays of 4 MiB or more request
// huge pages and grow by moving pages instead of copying bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace warren::data {

namespace internal {
/// Like realloc, but only for growing: `new_bytes` must be greater than `old_bytes`. Throws std::bad_alloc.
void* Reallocate(void* old, std::size_t old_bytes, std::size_t new_bytes);
void Free(void* memory, std::size_t bytes) noexcept;
}  // namespace internal

/// Like std::vector, but resize(size) leaves new elements uninitialized. Not thread-safe.
template <typename T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array&& other) noexcept {
    swap(other);
    return *this;
  }
  Array(const Array& other) { append(other); }
  Array& operator=(const Array& other) {
    if (this == &other) return *this;
    clear();
    append(other);
    return *this;
  }
  ~Array() { internal::Free(data_, capacity_ * sizeof(T)); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  operator std::span<const T>() const { return {data_, size_}; }

  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    if (capacity > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
    data_ = static_cast<T*>(internal::Reallocate(data_, capacity_ * sizeof(T), capacity * sizeof(T)));
    capacity_ = capacity;
  }
  /// Ensures capacity for `more` additional elements. Grows by at least half, so that adding elements one by
  /// one is cheap.
  void make_room(std::size_t more) {
    if (size_ + more > capacity_) reserve(std::max(size_ + more, capacity_ + capacity_ / 2 + 16));
  }
  void resize(std::size_t size) {
    if (size > capacity_) make_room(size - size_);
    size_ = size;
  }
  void resize(std::size_t size, const T& value) {
    const std::size_t old = size_;
    resize(size);
    if (size > old) std::fill(data_ + old, data_ + size, value);
  }
  void clear() { size_ = 0; }
  void push_back(const T& value) {
    const T copy = value;
    make_room(1);
    data_[size_++] = copy;
  }
  void append(std::span<const T> values) {
    if (values.empty()) return;
    make_room(values.size());
    std::memcpy(data_ + size_, values.data(), values.size_bytes());
    size_ += values.size();
  }
  void swap(Array& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace warren::data

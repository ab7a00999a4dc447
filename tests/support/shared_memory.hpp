// Memory that a process shares with the children it forks, at the same addresses. Containers with this
// allocator can live in it, so that something in memory survives the death of a child that changed it.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace settle::test {

// Also between processes. A child must not be killed while it holds one.
class process_mutex {
 public:
  process_mutex();
  ~process_mutex() { ::pthread_mutex_destroy(&mutex_); }
  process_mutex(const process_mutex&) = delete;
  process_mutex& operator=(const process_mutex&) = delete;

  void lock() { ::pthread_mutex_lock(&mutex_); }
  void unlock() { ::pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

// At most 512 MiB altogether; std::bad_alloc beyond. The first use must come before the first fork.
void* allocate_shared_bytes(std::size_t bytes);
void free_shared_bytes(void* at, std::size_t bytes) noexcept;

template <class T>
struct shared_allocator {
  using value_type = T;
  shared_allocator() = default;
  template <class U>
  shared_allocator(const shared_allocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t n) { return static_cast<T*>(allocate_shared_bytes(n * sizeof(T))); }
  void deallocate(T* at, std::size_t n) noexcept { free_shared_bytes(at, n * sizeof(T)); }
  friend bool operator==(const shared_allocator&, const shared_allocator&) { return true; }
};

using shared_text = std::basic_string<char, std::char_traits<char>, shared_allocator<char>>;
template <class T>
using shared_list = std::deque<T, shared_allocator<T>>;
template <class Key, class T>
using shared_map = std::map<Key, T, std::less<>, shared_allocator<std::pair<const Key, T>>>;

struct shared_delete {
  template <class T>
  void operator()(T* made) const {
    std::destroy_at(made);
    free_shared_bytes(made, sizeof(T));
  }
};
template <class T>
using shared_ptr_of = std::unique_ptr<T, shared_delete>;

template <class T>
shared_ptr_of<T> make_in_shared_memory() {
  return shared_ptr_of<T>(new (allocate_shared_bytes(sizeof(T))) T());
}

}  // namespace settle::test

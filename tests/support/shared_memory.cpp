#include "support/shared_memory.hpp"

#include <sys/mman.h>

#include <memory_resource>
#include <mutex>
#include <new>
#include <stdexcept>

namespace settle::test {
namespace {

constexpr std::size_t capacity_bytes = std::size_t{512} * 1024 * 1024;

// Stands at the beginning of the memory that it hands out; its own pointers point there as well.
struct arena {
  explicit arena(char* rest, std::size_t bytes)
      : all(rest, bytes, std::pmr::null_memory_resource()), pool(&all) {}

  process_mutex mutex;
  std::pmr::monotonic_buffer_resource all;
  std::pmr::unsynchronized_pool_resource pool;
};

arena& make_arena() {
  void* const at = ::mmap(nullptr, capacity_bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::runtime_error("mmap of shared memory failed");
  return *new (at) arena(static_cast<char*>(at) + sizeof(arena), capacity_bytes - sizeof(arena));
}

// Lives as long as the process: objects in it may be destroyed at any time.
arena& the_arena() {
  static arena& made = make_arena();
  return made;
}

}  // namespace

process_mutex::process_mutex() {
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutex_init(&mutex_, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
}

void* allocate_shared_bytes(std::size_t bytes) {
  auto& from = the_arena();
  const std::scoped_lock lock(from.mutex);
  return from.pool.allocate(bytes);
}

void free_shared_bytes(void* at, std::size_t bytes) noexcept {
  auto& from = the_arena();
  const std::scoped_lock lock(from.mutex);
  from.pool.deallocate(at, bytes);
}

}  // namespace settle::test

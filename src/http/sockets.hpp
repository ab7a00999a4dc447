// Sockets and epoll, as far as the server needs them.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "settle/environment.hpp"

namespace settle::inline v0::http {

class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int number) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() { close(); }
  void close();
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

struct listener {
  descriptor socket;
  std::uint16_t port = 0;
};
// Throws invalid_argument or listen_failed.
listener listen_on(const std::string& address, std::uint16_t port);

struct accepted {
  descriptor socket;
  std::string remote;  // "127.0.0.1:51234"
};
enum class accept_outcome { taken, nobody, exhausted };
// Exhausted: no file descriptor or no memory; it will fail again at once.
accept_outcome accept_from(const listener& at, accepted& into);

// Which descriptors can be read or written; each has a number that comes back with its events.
class poller {
 public:
  poller();
  // False: the kernel has no memory for it, or its limit is reached.
  [[nodiscard]] bool add(int descriptor, std::uint64_t number, std::uint32_t events);
  void change(int descriptor, std::uint64_t number, std::uint32_t events);
  void remove(int descriptor);
  // The span is valid until the next call. Returns early when woken.
  std::span<const epoll_event> wait(std::optional<duration> at_most);

  // By any thread.
  void wake();
  void woken();  // takes the wake-up away
  static constexpr std::uint64_t wake_number = ~std::uint64_t{0};

 private:
  descriptor epoll_;
  descriptor wake_;
  epoll_event events_[256] = {};
};

}  // namespace settle::inline v0::http

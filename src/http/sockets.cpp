#include "http/sockets.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/check.hpp"
#include "base/if_possible.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::http {
namespace {

struct endpoint {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(sockaddr_storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  sockaddr_in& v4() { return reinterpret_cast<sockaddr_in&>(storage); }
  sockaddr_in6& v6() { return reinterpret_cast<sockaddr_in6&>(storage); }
  bool is_v6() const { return storage.ss_family == AF_INET6; }
  std::uint16_t port() { return ntohs(is_v6() ? v6().sin6_port : v4().sin_port); }
};

endpoint endpoint_of(const std::string& given, std::uint16_t port) {
  const auto address = given == "localhost" ? std::string("127.0.0.1") : given;
  endpoint at;
  if (::inet_pton(AF_INET, address.c_str(), &at.v4().sin_addr) == 1) {
    at.v4().sin_family = AF_INET;
    at.v4().sin_port = htons(port);
    at.bytes = sizeof(sockaddr_in);
    return at;
  }
  if (::inet_pton(AF_INET6, address.c_str(), &at.v6().sin6_addr) == 1) {
    at.v6().sin6_family = AF_INET6;
    at.v6().sin6_port = htons(port);
    at.bytes = sizeof(sockaddr_in6);
    return at;
  }
  throw error(errc::invalid_argument, fmt::format("'{}' is neither a numeric address nor localhost", given));
}

std::string text_of(endpoint& at) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* address = at.is_v6() ? static_cast<const void*>(&at.v6().sin6_addr) : &at.v4().sin_addr;
  ::inet_ntop(at.storage.ss_family, address, text.data(), text.size());
  return at.is_v6() ? fmt::format("[{}]:{}", text.data(), at.port())
                    : fmt::format("{}:{}", text.data(), at.port());
}

}  // namespace

void descriptor::close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

listener listen_on(const std::string& address, std::uint16_t port) {
  auto at = endpoint_of(address, port);
  listener made{descriptor(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
  const int on = 1;
  const int socket = made.socket.get();
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (socket < 0 || ::bind(socket, at.get(), at.bytes) != 0 || ::listen(socket, SOMAXCONN) != 0 ||
      ::getsockname(socket, at.get(), &at.bytes) != 0)
    throw error(errc::listen_failed,
                fmt::format("cannot listen on {}: {}", text_of(at), std::strerror(errno)));
  made.port = at.port();
  return made;
}

accept_outcome accept_from(const listener& at, accepted& into) {
  for (;;) {
    endpoint peer;
    const int socket = ::accept4(at.socket.get(), peer.get(), &peer.bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket >= 0) {
      const int on = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      into.socket = descriptor(socket);
      into.remote.clear();
      if_possible([&] { into.remote = text_of(peer); });
      return accept_outcome::taken;
    }
    if (errno == EAGAIN) return accept_outcome::nobody;
    // Others (EINTR, ECONNABORTED, …) are the trouble of one connection that is gone.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM || errno == EBADF ||
        errno == EINVAL)
      return accept_outcome::exhausted;
  }
}

poller::poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wake_)
    throw error(errc::listen_failed,
                fmt::format("no file descriptors for the server: {}", std::strerror(errno)));
  if (!add(wake_.get(), wake_number, EPOLLIN))
    throw error(errc::listen_failed,
                fmt::format("the server cannot wait for events: {}", std::strerror(errno)));
}

bool poller::add(int descriptor, std::uint64_t number, std::uint32_t events) {
  epoll_event what{events, {}};
  what.data.u64 = number;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &what) == 0) return true;
  SETTLE_CHECK(errno == ENOMEM || errno == ENOSPC, "epoll refuses a descriptor");
  return false;
}

void poller::change(int descriptor, std::uint64_t number, std::uint32_t events) {
  epoll_event what{events, {}};
  what.data.u64 = number;
  SETTLE_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &what) == 0,
               "epoll has lost a descriptor");
}

void poller::remove(int descriptor) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

std::span<const epoll_event> poller::wait(std::optional<duration> at_most) {
  int milliseconds = -1;
  if (at_most) {
    const auto rounded =
        std::chrono::ceil<std::chrono::milliseconds>(std::max(*at_most, duration(0))).count();
    milliseconds = static_cast<int>(std::min<std::int64_t>(rounded, std::numeric_limits<int>::max()));
  }
  const int count = ::epoll_wait(epoll_.get(), events_, static_cast<int>(std::size(events_)), milliseconds);
  return {events_, static_cast<std::size_t>(std::max(count, 0))};
}

void poller::wake() {
  const std::uint64_t one = 1;
  // It can only fail when it is full of wake-ups already.
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void poller::woken() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(wake_.get(), &count, sizeof count);
}

}  // namespace settle::inline v0::http

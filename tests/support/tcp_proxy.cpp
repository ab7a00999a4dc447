#include "support/tcp_proxy.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace settle::test {
namespace {

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {
    if (fd_ < 0) throw std::runtime_error("tcp_proxy: no socket");
  }
  ~descriptor() { ::close(fd_); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

sockaddr_in address_of(const std::string& host, int port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host.c_str(), &made.sin_addr);
  return made;
}

struct link {
  explicit link(int client)
      : ends{descriptor(client), descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))} {}
  std::array<descriptor, 2> ends;  // the client's, the server's
};

}  // namespace

struct tcp_proxy::state {
  sockaddr_in server{};
  descriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  descriptor wake{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  int port = 0;
  std::list<link> links;  // the thread's own

  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  bool cutting = false;
  bool refusing = false;
  struct plan {
    direction which;
    fault what;
    std::size_t left;
    std::string last_words;
  };
  std::optional<plan> armed;
  bool struck = false;
  bool client_spoke_last = false;
  std::size_t round_trips = 0;
  std::jthread thread;

  void poke() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(wake.get(), &one, sizeof one);
  }

  bool stalled(direction which) {
    const std::scoped_lock lock(mutex);
    return armed && armed->what == stall && armed->which == which && struck;
  }

  // How many of the waiting bytes may pass.
  std::size_t allowance(direction which, std::size_t waiting) {
    const std::scoped_lock lock(mutex);
    if (which == to_server && !client_spoke_last) ++round_trips;
    client_spoke_last = which == to_server;
    if (!armed || armed->which != which) return waiting;
    const auto allowed = std::min(armed->left, waiting);
    armed->left -= allowed;
    if (allowed < waiting) struck = true;
    return allowed;
  }

  static bool send_all(int to, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto now = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (now <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(now));
    }
    return true;
  }

  // False when the connection is over.
  bool forward(link& on, direction which) {
    const int from = on.ends[which == to_server ? 0 : 1].get(),
              to = on.ends[which == to_server ? 1 : 0].get();
    char buffer[16384];
    const auto peeked = ::recv(from, buffer, sizeof buffer, MSG_PEEK | MSG_DONTWAIT);
    if (peeked <= 0) return false;
    const auto allowed = allowance(which, static_cast<std::size_t>(peeked));
    if (allowed > 0) {
      [[maybe_unused]] const auto taken = ::recv(from, buffer, allowed, 0);
      if (!send_all(to, {buffer, allowed})) return false;
    }
    if (allowed == static_cast<std::size_t>(peeked)) return true;
    const std::scoped_lock lock(mutex);
    if (armed->what == stall) return true;
    send_all(to, armed->last_words);
    armed.reset();  // one connection is cut, once
    return false;
  }

  void accept_one() {
    links.emplace_back(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    sockaddr_in to{};
    {
      const std::scoped_lock lock(mutex);
      if (refusing) return links.pop_back();
      to = server;
    }
    if (::connect(links.back().ends[1].get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
      links.pop_back();
  }

  void run() {
    while (true) {
      std::vector<pollfd> watched{{listener.get(), POLLIN, 0}, {wake.get(), POLLIN, 0}};
      const short client_events = stalled(to_server) ? 0 : POLLIN,
                  server_events = stalled(to_client) ? 0 : POLLIN;
      for (const auto& one : links) {
        watched.push_back({one.ends[0].get(), client_events, 0});
        watched.push_back({one.ends[1].get(), server_events, 0});
      }
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      std::uint64_t pokes;
      [[maybe_unused]] const auto ignored = ::read(wake.get(), &pokes, sizeof pokes);
      {
        const std::scoped_lock lock(mutex);
        if (stopping) return;
        if (std::exchange(cutting, false)) {
          links.clear();
          changed.notify_all();
          continue;
        }
      }
      std::size_t at = 2;
      for (auto one = links.begin(); one != links.end(); at += 2) {
        const auto ready = [&](std::size_t i) { return (watched[i].revents & POLLIN) != 0; };
        const auto gone = [&](std::size_t i) { return (watched[i].revents & (POLLHUP | POLLERR)) != 0; };
        bool alive = !ready(at) || forward(*one, to_server);
        alive = alive && (!ready(at + 1) || forward(*one, to_client));
        if (gone(at) && !ready(at)) alive = false;
        if (gone(at + 1) && !ready(at + 1)) alive = false;
        one = alive ? std::next(one) : links.erase(one);
      }
      if (watched[0].revents != 0) accept_one();
    }
  }
};

tcp_proxy::tcp_proxy(const std::string& host, int port) : state_(std::make_unique<state>()) {
  state_->server = address_of(host, port);
  auto own = address_of("127.0.0.1", 0);
  socklen_t size = sizeof own;
  auto* address = reinterpret_cast<sockaddr*>(&own);
  if (::bind(state_->listener.get(), address, size) != 0 || ::listen(state_->listener.get(), 64) != 0 ||
      ::getsockname(state_->listener.get(), address, &size) != 0)
    throw std::runtime_error("tcp_proxy: cannot listen");
  state_->port = ntohs(own.sin_port);
  state_->thread = std::jthread([s = state_.get()] { s->run(); });
}

tcp_proxy::~tcp_proxy() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->poke();
  state_->thread.join();
}

int tcp_proxy::port() const { return state_->port; }

void tcp_proxy::arm(direction which, fault what, std::size_t after, std::string last_words) {
  const std::scoped_lock lock(state_->mutex);
  state_->armed = {which, what, after, std::move(last_words)};
  state_->struck = false;
}

void tcp_proxy::disarm() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->armed.reset();
    state_->struck = false;
  }
  state_->poke();
}

void tcp_proxy::cut_all() {
  std::unique_lock lock(state_->mutex);
  state_->cutting = true;
  state_->poke();
  state_->changed.wait(lock, [&] { return !state_->cutting; });
}

void tcp_proxy::lead_to(int port) {
  const std::scoped_lock lock(state_->mutex);
  state_->server.sin_port = htons(static_cast<std::uint16_t>(port));
}

void tcp_proxy::refuse(bool refusing) {
  const std::scoped_lock lock(state_->mutex);
  state_->refusing = refusing;
}

bool tcp_proxy::struck() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->struck;
}

std::size_t tcp_proxy::round_trips() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->round_trips;
}

}  // namespace settle::test

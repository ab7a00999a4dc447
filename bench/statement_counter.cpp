#include "statement_counter.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace bench {

statement_counter::statement_counter(PGconn* server)
    : host_(PQhost(server)),
      port_(PQport(server)),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      ::listen(listener_, 64) != 0)
    throw std::runtime_error("statement_counter: cannot listen");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

statement_counter::~statement_counter() {
  thread_.request_stop();
  thread_.join();
  for (const auto& one : lines_) {
    ::close(one.client);
    ::close(one.server);
  }
  ::close(listener_);
}

// Encryption would hide what is counted.
std::string statement_counter::detour() const {
  sockaddr_in own{};
  socklen_t size = sizeof own;
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size);
  return " host=127.0.0.1 port=" + std::to_string(ntohs(own.sin_port)) +
         " sslmode=disable gssencmode=disable";
}

int statement_counter::connect_to_server() const {
  if (host_.starts_with('/')) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    const auto path = host_ + "/.s.PGSQL." + port_;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(made, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return made;
    ::close(made);
    return -1;
  }
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host_.c_str(), port_.c_str(), &wanted, &found) != 0) return -1;
  const int made = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool reached = ::connect(made, found->ai_addr, found->ai_addrlen) == 0;
  ::freeaddrinfo(found);
  if (reached) return made;
  ::close(made);
  return -1;
}

void statement_counter::run(const std::stop_token& stop) {
  constexpr int look_for_stop_ms = 50;
  while (!stop.stop_requested()) {
    std::vector<pollfd> watched{{listener_, POLLIN, 0}};
    for (const auto& one : lines_) {
      watched.push_back({one.client, POLLIN, 0});
      watched.push_back({one.server, POLLIN, 0});
    }
    if (::poll(watched.data(), watched.size(), look_for_stop_ms) <= 0) continue;
    std::size_t at = 1;
    for (auto one = lines_.begin(); one != lines_.end(); at += 2) {
      const bool alive = (watched[at].revents == 0 || forward(*one, true)) &&
                         (watched[at + 1].revents == 0 || forward(*one, false));
      if (!alive) {
        ::close(one->client);
        ::close(one->server);
      }
      one = alive ? std::next(one) : lines_.erase(one);
    }
    if (watched[0].revents != 0) accept_one();
  }
}

void statement_counter::accept_one() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  const int server = connect_to_server();
  if (server >= 0)
    lines_.push_back({client, server, {}});
  else
    ::close(client);
}

// False when the connection is over.
bool statement_counter::forward(line& on, bool from_client) {
  char buffer[16384];
  const auto got = ::recv(from_client ? on.client : on.server, buffer, sizeof buffer, 0);
  if (got <= 0) return false;
  const std::string_view bytes(buffer, static_cast<std::size_t>(got));
  if (from_client) count(on.at, bytes);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const auto now =
        ::send(from_client ? on.server : on.client, buffer + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<std::size_t>(now);
  }
  return true;
}

void statement_counter::count(position& at, std::string_view bytes) {
  while (!bytes.empty()) {
    if (at.to_skip > 0) {
      const auto skipped = std::min<std::size_t>(at.to_skip, bytes.size());
      at.to_skip -= static_cast<std::uint32_t>(skipped);
      bytes.remove_prefix(skipped);
      continue;
    }
    at.head += bytes.front();
    bytes.remove_prefix(1);
    const std::size_t type = at.greeted ? 1 : 0;
    constexpr std::size_t length_bytes = 4;
    if (at.head.size() < type + length_bytes) continue;
    if (at.greeted && (at.head[0] == 'Q' || at.head[0] == 'E')) ++statements_;
    std::uint32_t length = 0;  // which counts itself
    for (const char byte : at.head.substr(type)) length = length << 8 | static_cast<unsigned char>(byte);
    at = {{}, length - static_cast<std::uint32_t>(length_bytes), true};
  }
}

}  // namespace bench

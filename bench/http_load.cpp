#include "http_load.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

int connected_to(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto at = loopback(port);
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return socket;
  ::close(socket);
  return -1;
}

}  // namespace

std::string post_of(const std::string& path, const std::string& body, const std::string& headers) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

http_load::http_load(std::uint16_t port, int connections, const std::string& path)
    : http_load(port, connections,
                [request = "GET " + path +
                           " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"](
                    std::size_t, std::string_view) { return request; }) {}

http_load::http_load(std::uint16_t port, int connections, script next)
    : next_(std::move(next)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  for (int n = 0; n < connections; ++n) {
    clients_.push_back({static_cast<std::size_t>(n), connected_to(port), {}, {}});
    if (clients_.back().socket < 0) throw std::runtime_error("cannot connect to the server");
    epoll_event what{EPOLLIN, {}};
    what.data.u32 = static_cast<std::uint32_t>(n);
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, clients_.back().socket, &what);
  }
}

http_load::~http_load() {
  for (const auto& one : clients_) ::close(one.socket);
  ::close(epoll_);
}

void http_load::ask(client& who) {
  const auto request = next_(who.number, who.heard);
  if (::send(who.socket, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    throw std::runtime_error("the server takes no requests");
}

bool http_load::is_answered(client& who) {
  char buffer[4096];
  const auto got = ::recv(who.socket, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got <= 0) throw std::runtime_error("the server has closed a connection");
  who.seen.append(buffer, static_cast<std::size_t>(got));
  const auto end = who.seen.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const auto length = who.seen.find("Content-Length: ");
  if (!who.seen.starts_with("HTTP/1.1 200 ") || length > end)
    throw std::runtime_error("an odd answer: " + who.seen);
  if (who.seen.size() < end + 4 + std::stoul(who.seen.substr(length + 16, 10))) return false;
  who.heard = who.seen.substr(end + 4);
  who.seen.clear();
  return true;
}

void http_load::run(std::int64_t requests) {
  auto to_ask = requests, to_hear = requests;
  for (auto& one : clients_)
    if (to_ask-- > 0) ask(one);
  epoll_event events[64];
  while (to_hear > 0) {
    const int count = ::epoll_wait(epoll_, events, 64, 10'000);
    if (count <= 0) throw std::runtime_error("the server is silent");
    for (int n = 0; n < count; ++n) {
      auto& who = clients_[events[n].data.u32];
      if (!is_answered(who)) continue;
      --to_hear;
      if (to_ask-- > 0) ask(who);
    }
  }
}

void await_listener(std::uint16_t port) {
  for (int n = 0; n < 1000; ++n) {
    const int socket = connected_to(port);
    if (socket >= 0) {
      ::close(socket);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw std::runtime_error("nobody listens");
}

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto at = loopback(0);
  socklen_t bytes = sizeof at;
  ::bind(socket, reinterpret_cast<const sockaddr*>(&at), bytes);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &bytes);
  ::close(socket);
  return ntohs(at.sin_port);
}

void pin_to_core(int core) {
  if (std::thread::hardware_concurrency() < 2) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

}  // namespace bench

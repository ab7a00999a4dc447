// A client of HTTP that sends bytes as they are, right or wrong, and reads answers one by one.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace settle::test {

struct raw_answer {
  int status = 0;  // 0: the connection ended before there was a whole one
  std::string head;
  std::string body;
  bool has(std::string_view text) const { return head.find(text) != std::string::npos; }
};

class raw_http {
 public:
  explicit raw_http(std::uint16_t port, int timeout_seconds = 20)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{timeout_seconds, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~raw_http() {
    if (socket_ >= 0) ::close(socket_);
  }
  raw_http(raw_http&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        connected_(other.connected_),
        seen_(std::move(other.seen_)) {}
  raw_http& operator=(raw_http&&) = delete;

  bool connected() const { return connected_; }
  int descriptor() const { return socket_; }

  // False: the other side has closed.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void finish() const { ::shutdown(socket_, SHUT_WR); }
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(std::exchange(socket_, -1));
  }

  raw_answer answer(bool to_head = false) {
    raw_answer got;
    std::size_t end = 0;
    while ((end = seen_.find("\r\n\r\n")) == std::string::npos)
      if (!read_more()) return {};
    got.head = seen_.substr(0, end + 2);
    seen_.erase(0, end + 4);
    got.status = std::stoi(got.head.substr(9, 3));
    const auto at = got.head.find("Content-Length: ");
    const std::size_t bytes = to_head || at == std::string::npos ? 0 : std::stoul(got.head.substr(at + 16));
    while (seen_.size() < bytes)
      if (!read_more()) return {};
    got.body = seen_.substr(0, bytes);
    seen_.erase(0, bytes);
    return got;
  }

  raw_answer ask(std::string_view bytes) {
    send(bytes);
    return answer();
  }

  // Whether the other side closes without another byte.
  bool ends() { return seen_.empty() && !read_more(); }

 private:
  bool read_more() {
    char buffer[16384];
    const auto got = ::recv(socket_, buffer, sizeof buffer, 0);
    if (got > 0) seen_.append(buffer, static_cast<std::size_t>(got));
    return got > 0;
  }

  int socket_;
  bool connected_ = false;
  std::string seen_;
};

inline std::string get_of(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n\r\n";
}

inline std::string post_of(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

}  // namespace settle::test

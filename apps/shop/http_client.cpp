#include "http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <charconv>
#include <utility>

namespace shop {
namespace {

constexpr std::size_t answer_bytes_max = std::size_t{16} << 20;

std::string text_of(const http_call& what) {
  std::string made = what.method + " " + what.target + " HTTP/1.1\r\nHost: localhost\r\n";
  for (const auto& [name, content] : what.headers) made += name + ": " + content + "\r\n";
  if (!what.body.empty()) made += "Content-Type: application/json\r\n";
  return made + "Content-Length: " + std::to_string(what.body.size()) + "\r\n\r\n" + what.body;
}

// The head without its empty line; false if it is none.
bool read_head(std::string_view head, settle::request_answer& into) {
  if (!head.starts_with("HTTP/1.1 ") || head.size() < 12) return false;
  const auto digits = head.substr(9, 3);
  if (std::from_chars(digits.data(), digits.data() + 3, into.status).ec != std::errc()) return false;
  while (true) {
    const auto end = head.find("\r\n");
    if (end == std::string_view::npos) return true;
    head.remove_prefix(end + 2);
    const auto line = head.substr(0, head.find("\r\n"));
    const auto colon = line.find(": ");
    if (colon != std::string_view::npos)
      into.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
}

}  // namespace

http_client::http_client(port_finder port, settle::duration timeout)
    : port_(std::move(port)), timeout_(timeout) {}
http_client::~http_client() { close(); }

void http_client::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

bool http_client::connect() {
  const auto port = port_();
  if (port == 0) return false;
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return false;
  const timeval limit{.tv_sec = timeout_.count() / 1'000'000, .tv_usec = timeout_.count() % 1'000'000};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int at_once = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
  close();
  return false;
}

bool http_client::write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool http_client::read_more(std::string& into) const {
  char piece[8192];
  const auto got = ::recv(socket_, piece, sizeof piece, 0);
  if (got <= 0 || into.size() > answer_bytes_max) return false;
  into.append(piece, static_cast<std::size_t>(got));
  return true;
}

settle::request_answer http_client::read_answer() {
  std::string text;
  std::size_t end;
  while ((end = text.find("\r\n\r\n")) == std::string::npos)
    if (!read_more(text)) return {};
  settle::request_answer made;
  if (!read_head(std::string_view(text).substr(0, end), made)) return {};
  made.body = text.substr(end + 4);
  const auto length = made.header("Content-Length");
  std::size_t wanted = 0;
  std::from_chars(length.data(), length.data() + length.size(), wanted);
  while (made.body.size() < wanted)
    if (!read_more(made.body)) return {};
  return made;
}

settle::request_answer http_client::send(const http_call& what) {
  const bool was_open = socket_ >= 0;
  if (!was_open && !connect()) return {};
  auto made = write(text_of(what)) ? read_answer() : settle::request_answer{};
  if (made.status == 0) {
    close();
    if (was_open) return send(what);  // at most once: it is closed now
  } else if (made.header("Connection") == "close") {
    close();
  }
  return made;
}

void http_client::send_and_hang_up(const http_call& what, bool whole) {
  close();
  if (!connect()) return;
  const auto text = text_of(what);
  write(std::string_view(text).substr(0, whole ? text.size() : text.size() / 2));
  close();
}

}  // namespace shop

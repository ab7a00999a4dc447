#include "http/client_line.hpp"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace settle::inline v0::http {
namespace {

constexpr std::size_t read_bytes = std::size_t{16} * 1024;

mishap not_ready(waited how, std::string_view doing) {
  if (how == waited::stopped) return {trouble::stopped, fmt::format("stopped while {}", doing)};
  return {trouble::late, fmt::format("no time left while {}", doing)};
}

// The socket, or errno.
struct attempt {
  descriptor socket = {};
  mishap failed = {};
};

attempt connect_to(const endpoint_address& to, const time_limit& limit, steady::time_point until) {
  attempt made{descriptor(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0))};
  const int socket = made.socket.get();
  int result = 0;
  if (socket < 0 || ::connect(socket, reinterpret_cast<const sockaddr*>(&to.storage), to.bytes) != 0)
    result = errno;
  if (result == EINPROGRESS) {
    const auto how = limit.wait(socket, POLLOUT, until);
    if (how != waited::ready) {
      made.failed = not_ready(how, "connecting to " + to.text());
      return made;
    }
    socklen_t size = sizeof result;
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &result, &size);
  }
  if (result != 0) {
    made.failed = {trouble::cannot_connect, fmt::format("{}: {}", to.text(), std::strerror(result))};
    return made;
  }
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return made;
}

}  // namespace

client_line::state client_line::ended(std::string detail) {
  if (detail_.empty()) detail_ = std::move(detail);
  return state::ended;
}

mishap client_line::put(std::string_view bytes) {
  sent_ = false;
  if (!tls_) {
    out_.append(bytes);
    return {};
  }
  if (tls_->seal(bytes) != tls_session::step::done) return {trouble::ended, "TLS: " + tls_->reason()};
  tls_->take(out_);
  return {};
}

client_line::state client_line::flush() {
  while (out_at_ < out_.size()) {
    const auto sent = ::send(socket_.get(), out_.data() + out_at_, out_.size() - out_at_, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return state::wait;
    if (sent < 0) return ended(std::strerror(errno));
    sent_ = true;
    out_at_ += static_cast<std::size_t>(sent);
  }
  out_.clear();
  out_at_ = 0;
  return state::done;
}

client_line::state client_line::read(std::string& into) {
  char buffer[read_bytes];
  const auto got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return state::wait;
  if (got < 0) return ended(std::strerror(errno));
  if (got == 0) {
    ended_well_ = !tls_;  // with TLS somebody else may have cut it
    return ended("the server has closed the connection");
  }
  const std::string_view fresh(buffer, static_cast<std::size_t>(got));
  if (!tls_) {
    into.append(fresh);
    return state::done;
  }
  tls_->give(fresh);
  const auto before = into.size();
  const auto opened = tls_->open(into);
  tls_->take(out_);
  if (opened == tls_session::step::failed) return ended("TLS: " + tls_->reason());
  if (opened == tls_session::step::ended) {
    ended_well_ = true;
    return ended("the server has closed the connection");
  }
  return into.size() > before ? state::done : state::wait;
}

bool client_line::is_quiet() const {
  char byte;
  if (tls_ && !tls_->is_quiet()) return false;
  return ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

mishap client_line::secure(const tls_context& by, const client_target& to, const time_limit& limit,
                           steady::time_point until) {
  tls_.emplace(by, to.host);
  auto failed = wait_for_hands(limit, until);
  sent_ = false;
  return failed;
}

mishap client_line::wait_for_hands(const time_limit& limit, steady::time_point until) {
  std::string sealed(read_bytes, '\0');
  while (true) {
    const auto shaken = tls_->shake_hands();
    tls_->take(out_);
    const auto flushed = flush();  // also why it was refused
    if (shaken == tls_session::step::failed || shaken == tls_session::step::ended)
      return {trouble::tls_refused, "TLS: " + tls_->reason()};
    if (flushed == state::ended) return {trouble::tls_refused, "TLS: " + detail_};
    if (shaken == tls_session::step::done && flushed == state::done) return {};
    const short events = flushed == state::wait ? POLLIN | POLLOUT : POLLIN;
    const auto how = limit.wait(socket(), events, until);
    if (how != waited::ready) return not_ready(how, "shaking hands for TLS");
    const auto got = ::recv(socket(), sealed.data(), sealed.size(), 0);
    if (got > 0)
      tls_->give({sealed.data(), static_cast<std::size_t>(got)});
    else if (got == 0)
      return {trouble::tls_refused, "TLS: the server has closed the connection"};
    else if (errno != EAGAIN && errno != EINTR)
      return {trouble::tls_refused, fmt::format("TLS: {}", std::strerror(errno))};
  }
}

opened_line open_line(const client_target& to, lookup& names, const tls_context* tls, const time_limit& limit,
                      duration connect_time_max) {
  const auto until = limit.at_most(connect_time_max);
  auto found = names.find(to.host, to.port, limit.stop(), until);
  if (found.how != waited::ready) return {{}, not_ready(found.how, "looking up " + to.host)};
  if (found.addresses.empty()) return {{}, {trouble::name_not_found, to.host + ": " + found.why}};
  opened_line made;
  auto left = found.addresses.size();
  for (const auto& address : found.addresses) {
    // An address that does not answer leaves time for the others.
    const auto share = (until - steady::now()) / static_cast<std::int64_t>(left--);
    auto reached = connect_to(address, limit, steady::now() + share);
    made.failed = std::move(reached.failed);
    if (made.failed.why == trouble::stopped) return made;
    if (made.failed) continue;
    made.line = std::make_unique<client_line>(std::move(reached.socket));
    if (tls != nullptr) made.failed = made.line->secure(*tls, to, limit, until);
    if (made.failed) made.line.reset();
    return made;
  }
  return made;
}

}  // namespace settle::inline v0::http

#include "rabbitmq/line.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "settle/error.hpp"

namespace settle::inline v0::rabbitmq {
namespace {

// How often a wait looks whether it is to stop: connecting happens seldom, so nothing faster is worth a
// thread.
constexpr int stop_poll_ms = 20;

error unavailable(std::string_view name, std::string_view what) {
  return {errc::destination_unavailable, fmt::format("{}: {}", name, what)};
}

std::string tls_reason() {
  const auto code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "TLS failed";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

// OpenSSL writes to its socket without asking for no SIGPIPE, which would end a process that has not ignored
// it.
class without_sigpipe {
 public:
  without_sigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~without_sigpipe() {
    const timespec at_once{};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  without_sigpipe(const without_sigpipe&) = delete;
  without_sigpipe& operator=(const without_sigpipe&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

struct free_addresses {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

}  // namespace

void line::free_tls::operator()(ssl_st* tls) const noexcept { SSL_free(tls); }
void line::free_tls::operator()(ssl_ctx_st* context) const noexcept { SSL_CTX_free(context); }

line::line(const address& to, const options& with, const limit& within) : name_(to.name()) {
  try {
    connect(to, within);
    if (to.tls) secure(to, with, within);
  } catch (...) {
    if (socket_ >= 0) ::close(socket_);
    throw;
  }
}

line::~line() {
  tls_.reset();
  ::close(socket_);
}

void line::connect(const address& to, const limit& within) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int failed = ::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &list))
    throw unavailable(name_, fmt::format("no address: {}", ::gai_strerror(failed)));
  const std::unique_ptr<addrinfo, free_addresses> found(list);
  std::string why = "no address";
  for (const auto* one = list; one != nullptr; one = one->ai_next) {
    socket_ = ::socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0) throw unavailable(name_, std::strerror(errno));
    int result = ::connect(socket_, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (result == EINPROGRESS) {
      await(POLLOUT, within);
      socklen_t size = sizeof result;
      ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &result, &size);
    }
    if (result == 0) {
      const int on = 1;
      ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return;
    }
    why = std::strerror(result);
    ::close(std::exchange(socket_, -1));
  }
  throw unavailable(name_, fmt::format("cannot connect: {}", why));
}

void line::secure(const address& to, const options& with, const limit& within) {
  context_.reset(SSL_CTX_new(TLS_client_method()));
  auto* context = context_.get();
  const auto require = [&](bool done, std::string_view what) {
    if (!done) throw unavailable(name_, fmt::format("{}: {}", what, tls_reason()));
  };
  require(context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1, "TLS");
  require((with.ca_file.empty() ? SSL_CTX_set_default_verify_paths(context)
                                : SSL_CTX_load_verify_locations(context, with.ca_file.c_str(), nullptr)) == 1,
          "trusted authorities");
  if (!with.certificate_file.empty()) {
    require(SSL_CTX_use_certificate_chain_file(context, with.certificate_file.c_str()) == 1, "certificate");
    require(SSL_CTX_use_PrivateKey_file(context, with.key_file.c_str(), SSL_FILETYPE_PEM) == 1, "key");
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  tls_.reset(SSL_new(context));
  require(tls_ != nullptr && SSL_set_fd(tls_.get(), socket_) == 1, "TLS");
  in6_addr number{};
  const bool is_number = ::inet_pton(AF_INET, to.host.c_str(), &number) == 1 ||
                         ::inet_pton(AF_INET6, to.host.c_str(), &number) == 1;
  if (is_number) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), to.host.c_str());
  } else {
    SSL_set1_host(tls_.get(), to.host.c_str());
    SSL_set_tlsext_host_name(tls_.get(), to.host.c_str());
  }
  while (true) {
    const without_sigpipe during;
    const int done = SSL_connect(tls_.get());
    if (done == 1) return;
    const int wants = SSL_get_error(tls_.get(), done);
    if (wants != SSL_ERROR_WANT_READ && wants != SSL_ERROR_WANT_WRITE)
      throw unavailable(name_, fmt::format("TLS: {}", tls_reason()));
    await(wants == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, within);
  }
}

void line::await(short events, const limit& within) const {
  pollfd one{socket_, events, 0};
  while (true) {
    if (within.stop.stop_requested()) throw error(errc::cancelled, name_ + ": stopped by the caller");
    if (steady::now() >= within.until) throw unavailable(name_, "no answer in time while connecting");
    if (::poll(&one, 1, stop_poll_ms) > 0) return;
  }
}

std::size_t line::tls_result(int done) const {
  if (done > 0) return static_cast<std::size_t>(done);
  const int wants = SSL_get_error(tls_.get(), done);
  if (wants == SSL_ERROR_WANT_READ || wants == SSL_ERROR_WANT_WRITE) return 0;
  if (wants == SSL_ERROR_ZERO_RETURN) throw unavailable(name_, "it has closed the connection");
  throw unavailable(name_, fmt::format("the connection broke: {}", tls_reason()));
}

std::size_t line::read(char* into, std::size_t size) {
  if (tls_) {
    const without_sigpipe during;
    return tls_result(SSL_read(tls_.get(), into, static_cast<int>(size)));
  }
  const auto got = ::recv(socket_, into, size, 0);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  throw unavailable(name_, got == 0 ? "it has closed the connection"
                                    : fmt::format("the connection broke: {}", std::strerror(errno)));
}

std::size_t line::write(std::string_view bytes) {
  if (tls_) {
    const without_sigpipe during;
    return tls_result(SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())));
  }
  const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return 0;
  throw unavailable(name_, fmt::format("the connection broke: {}", std::strerror(errno)));
}

}  // namespace settle::inline v0::rabbitmq

// TLS between bytes and bytes: it never touches a socket, so nothing of it can block or raise a signal.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "settle/http_client.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace settle::inline v0::http {

// What all connections of a client share: whom it trusts, and what it shows.
class tls_context {
 public:
  explicit tls_context(const client_options& options);  // throws invalid_argument
  ssl_ctx_st* get() const { return context_.get(); }
  bool verifies() const { return verifies_; }

 private:
  struct release {
    void operator()(ssl_ctx_st* context) const noexcept;
  };
  std::unique_ptr<ssl_ctx_st, release> context_;
  bool verifies_;
};

class tls_session {
 public:
  tls_session(const tls_context& of, const std::string& host);  // throws destination_unavailable

  enum class step { done, more, ended, failed };
  step shake_hands();
  // Seals bytes; what has to be sent is in taken().
  step seal(std::string_view bytes);
  // Bytes that have come from the other side.
  void give(std::string_view sealed);
  // Opens what was given, behind `into`. More: nothing whole is left. Ended: the other side said goodbye.
  step open(std::string& into);
  // What has to be sent.
  void take(std::string& into);
  bool is_quiet() const;  // nothing was given that is not opened yet
  std::string reason() const { return reason_; }

 private:
  step judge(int done);
  struct release {
    void operator()(ssl_st* session) const noexcept;
  };
  std::unique_ptr<ssl_st, release> session_;
  std::string reason_;
};

}  // namespace settle::inline v0::http

// A socket to the server, with TLS if it is asked for, that never blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "rabbitmq/address.hpp"
#include "rabbitmq/limit.hpp"
#include "settle/rabbitmq.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace settle::inline v0::rabbitmq {

class line {
 public:
  // Connects. Throws destination_unavailable or cancelled.
  line(const address& to, const options& with, const limit& within);
  ~line();
  line(const line&) = delete;
  line& operator=(const line&) = delete;

  int socket() const { return socket_; }

  // How many bytes there were, up to `size`; 0: none now. Throws destination_unavailable when the other side
  // has gone.
  std::size_t read(char* into, std::size_t size);
  // How many bytes the line has taken; 0: none now.
  std::size_t write(std::string_view bytes);

 private:
  struct free_tls {
    void operator()(ssl_st* tls) const noexcept;
    void operator()(ssl_ctx_st* context) const noexcept;
  };
  void connect(const address& to, const limit& within);
  void secure(const address& to, const options& with, const limit& within);
  void await(short events, const limit& within) const;
  std::size_t tls_result(int done) const;

  std::string name_;
  int socket_ = -1;
  std::unique_ptr<ssl_ctx_st, free_tls> context_;
  std::unique_ptr<ssl_st, free_tls> tls_;
};

}  // namespace settle::inline v0::rabbitmq

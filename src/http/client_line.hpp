// A connection to a server, with TLS or without, that never blocks by itself.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/client_target.hpp"
#include "http/lookup.hpp"
#include "http/sockets.hpp"
#include "http/time_limit.hpp"
#include "http/tls.hpp"
#include "settle/http_client.hpp"

namespace settle::inline v0::http {

// Why something did not work.
struct mishap {
  trouble why = trouble::none;
  std::string detail = {};
  explicit operator bool() const { return why != trouble::none; }
};

class client_line {
 public:
  explicit client_line(descriptor socket) : socket_(std::move(socket)) {}

  int socket() const { return socket_.get(); }
  mishap secure(const tls_context& by, const client_target& to, const time_limit& limit,
                steady::time_point until);

  // What is to be sent; nothing of it is sent yet.
  mishap put(std::string_view bytes);
  enum class state { done, wait, ended };
  // Ended: nothing more can be sent; detail() says why.
  state flush();
  // Whether the network has taken a byte since the last put().
  bool has_sent() const { return sent_; }
  // What has come, behind `into`. Wait: nothing now. Ended: see ended_well().
  state read(std::string& into);
  // The other side has closed it by the rules: what came before is all that it wanted to say.
  bool ended_well() const { return ended_well_; }
  const std::string& detail() const { return detail_; }

  // Nothing has come, and it has not ended: another request may go into it.
  bool is_quiet() const;

 private:
  state ended(std::string detail);
  mishap wait_for_hands(const time_limit& limit, steady::time_point until);

  descriptor socket_;
  std::optional<tls_session> tls_;
  std::string out_;  // sealed, if there is TLS
  std::size_t out_at_ = 0;
  bool sent_ = false;
  bool ended_well_ = false;
  std::string detail_;
};

// To whom it leads, or why there is none. Without `tls` in the clear.
struct opened_line {
  std::unique_ptr<client_line> line = {};
  mishap failed = {};
};
opened_line open_line(const client_target& to, lookup& names, const tls_context* tls, const time_limit& limit,
                      duration connect_time_max);

}  // namespace settle::inline v0::http

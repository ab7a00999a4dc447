// An HTTP/1.1 client that says what is known about a request that failed.
//
//   namespace http = settle::http;
//   http::client client({.time_max = std::chrono::seconds(5)});
//   const auto result = client.send({.method = "POST", .url = "https://bank.example/charges", .body = "{}"});
//   switch (result.how) {
//     case http::delivery::answered: …   // whatever the status: result.answer
//     case http::delivery::not_sent: …   // not a byte of the request has left: it was certainly not done
//     case http::delivery::unknown:  …   // it may have been done; result.why and result.detail say more
//   }
//
// What it promises:
// - What becomes of a request is a value. `not_sent` is only said where no byte of it was given to the
//   network: the name was not found, nobody listens, TLS was refused. After the first byte everything but a
//   whole answer is `unknown`.
// - It is not sent twice. A kept connection that the server had closed before the first byte is replaced by
//   another one; one that ends later makes the request `unknown`, unless it is repeatable: GET, HEAD and
//   OPTIONS are, others if they say so (client_request::repeatable). Such a request is sent once more if the
//   kept connection ended without a byte of an answer.
// - Every exchange ends: connecting has a limit, the whole has one, a stop token ends it at once.
// - An answer is bounded, and read strictly: one whose length two readers could understand differently is not
//   believed, and its connection ends. One that ends with its connection, without a length, counts as whole.
// - Nothing happens by itself: no redirect is followed (a 3xx is an answer), no proxy is taken from the
//   environment, no cookie is kept, nothing is compressed.
// - https checks the server's certificate and name, with TLS 1.2 or newer.
//
// Connections are kept per scheme, host and port, and taken up again by whoever was the last to use one. The
// addresses of a name are looked up for every new connection.
//
// Counted in env.counters: settle_http_client_requests_total by outcome and trouble,
// settle_http_client_request_seconds by outcome, settle_http_client_connections_total.
//
// Threads: every member may be called by any thread; send() keeps its thread until it returns. The client
// must outlive the calls. Its end waits for names that are still being looked up.
//
// Errors: invalid_argument, for options outside their bounds and requests that make no sense (a URL with a
// blank, a header with a line break, a header that the client writes itself). Files of certificates that
// cannot be read, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "settle/environment.hpp"
#include "settle/http.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::http {

struct client_options {
  // Connections to one host, in use and kept; whoever needs another one waits, within the request's time.
  std::size_t connections_per_host_max = 64;
  // Connections to all hosts together. Kept ones make room for those that are needed.
  std::size_t connections_max = 512;
  // A connection that nobody has used for so long is not used any more. Less than what servers keep one for,
  // so that a request seldom meets one that is just being closed.
  duration idle_time_max = std::chrono::seconds(4);

  // For looking up the name, connecting and TLS together.
  duration connect_time_max = std::chrono::seconds(5);
  // For the whole exchange, waiting for a connection included.
  duration time_max = std::chrono::seconds(30);

  // Status line, headers and trailer, and those of answers before the answer (1xx).
  std::size_t answer_head_bytes_max = std::size_t{32} * 1024;
  std::size_t answer_header_count_max = 200;
  std::size_t answer_body_bytes_max = std::size_t{1} * 1024 * 1024;

  // Authorities that are trusted, as PEM, instead of the system's.
  std::string ca_file = {};
  // What this side shows if the server asks for it, both as PEM: the certificate with its chain, and its key.
  std::string certificate_file = {};
  std::string key_file = {};
  // Whether the server must prove who it is. Without it https hides nothing from whoever stands between.
  bool verify_server = true;

  environment env = {};
};

struct client_request {
  std::string method = "GET";
  // http or https, without user, password and fragment; what is not ASCII is percent-encoded.
  std::string url = {};
  // Host, Content-Length, Transfer-Encoding, Connection, Expect, TE, Trailer and Upgrade are the client's.
  header_list headers = {};
  std::string body = {};
  // Instead of client_options::time_max and answer_body_bytes_max.
  std::optional<duration> time_max = std::nullopt;
  std::optional<std::size_t> answer_body_bytes_max = std::nullopt;
  // It may arrive twice: the server tells copies, by a key for instance.
  bool repeatable = false;
};

enum class delivery {
  answered,
  not_sent,  // it was certainly not done
  unknown,   // it may have been done
};
std::string_view to_string(delivery of);

// What has happened to a request that has no answer.
enum class trouble {
  none,
  no_connection_free,  // all that may be open were in use
  name_not_found,
  cannot_connect,
  tls_refused,  // certificate, name or protocol
  late,
  ended,      // the connection, before the answer was whole
  malformed,  // an answer that is no HTTP, or could be read in two ways
  too_large,
  stopped,  // by the caller
};
std::string_view to_string(trouble of);

struct client_result {
  delivery how = delivery::not_sent;
  trouble why = trouble::none;
  std::string detail = {};  // for people: "127.0.0.1:80: Connection refused"
  response answer = {};     // if it was answered

  bool answered() const { return how == delivery::answered; }
};

class client {
 public:
  explicit client(const client_options& options = {});
  ~client();
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  client_result send(const client_request& what, const std::stop_token& stop = {}) const;

  // Connections that are open, also those that nobody uses.
  std::size_t connections() const;
  // Closes those that nobody uses.
  void close_idle() const;

  const environment& env() const;

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace settle::inline v0::http

#pragma GCC visibility pop

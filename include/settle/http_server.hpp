// An HTTP/1.1 server for services, bounded in every direction.
//
//   settle::http::server server(std::move(routes), {.port = 8080});
//   …                                   // SIGTERM comes
//   server.drain(std::chrono::seconds(10));
//
// One thread reads and writes for all connections; handlers run on a pool of workers as plain functions,
// because they talk to databases; those that must not keep others waiting, on a worker_group of their own.
// Handlers that never wait say so (route_options::quick) and run on the first thread.
//
// What it promises:
// - A client that is slow, silent or hostile costs a bounded amount of memory and nobody else's time. Each
// limit
//   below has a name; what is beyond one is answered with a problem document, or closed where nobody listens.
// - A message whose length two readers could understand differently (Content-Length twice or beside
//   Transfer-Encoding, folded lines, bare line feeds, odd codings) is answered with 400 and the connection
//   ends.
// - Requests on one connection are answered in their order; the next one is not begun before the last is
// answered.
// - Work that was begun is never cancelled silently: see handler_time_max.
// There is no TLS here: stand behind something that has it, or stay on loopback, which is the default.
//
// Counted in env.counters: settle_http_requests_total and settle_http_request_seconds by route, method and
// status class; settle_http_connections_total, settle_http_closed_connections_total,
// settle_http_refused_connections_total, settle_http_refused_requests_total by reason. Each request is a line
// `http_request` in the log at level debug.
//
// Threads: every member may be called by any thread. Errors: invalid_argument for options outside their
// bounds, listen_failed if the address cannot be had.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "settle/environment.hpp"
#include "settle/http.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::http {

struct server_options {
  // Numeric IPv4 or IPv6 address, or localhost for 127.0.0.1; other names are not looked up, because what
  // they mean can change.
  std::string address = "127.0.0.1";
  // 0: the system chooses a free one; see server::port().
  std::uint16_t port = 0;

  // Threads for handlers that are not quick and whose routes name no worker_group: as many as they may hold
  // database connections. At most 1,024.
  std::size_t worker_threads = 8;
  // Requests that wait for a worker. Beyond it: 503 with Retry-After, at once; a longer queue only makes
  // clients give up before their turn.
  std::size_t queue_max = 256;
  // From the complete request to the handler's answer, waiting included. Then the client gets 503 and the
  // connection ends. A handler that has not begun will not; one that runs is asked to stop through
  // request::cancelled, keeps its worker until it returns, and its answer is dropped, logged and counted. So
  // a 503 with the code `handler_timeout` does not tell whether the work was done: that is for an idempotency
  // key.
  duration handler_time_max = std::chrono::seconds(30);

  // Open connections. Beyond it a new one takes the place of the oldest that has not sent a whole head yet,
  // so slow clients keep nobody out, or of one that has been silent between two requests for a second. If all
  // others are at work: 503 with Retry-After and closed. Each costs a file descriptor and some 2 KiB while
  // idle.
  std::size_t connections_max = 1024;
  // How long a new connection may be silent, and how long one is kept between two requests.
  duration first_byte_time_max = std::chrono::seconds(10);
  duration idle_time_max = std::chrono::seconds(60);

  // The request line in bytes; 414 beyond it. Longer URLs are cut by somebody on the way anyway.
  std::size_t request_line_bytes_max = std::size_t{8} * 1024;
  // Request line and headers in bytes; 431 beyond it. Also the largest chunk header and trailer.
  std::size_t header_bytes_max = std::size_t{16} * 1024;
  // Header fields; 431 beyond it. Each costs a search.
  std::size_t header_count_max = 100;
  // From the first byte to the end of the headers, however steadily they drip; 408 after it.
  duration header_time_max = std::chrono::seconds(10);

  // A body in bytes; 413 beyond it, before it is read. A route can have its own.
  std::size_t body_bytes_max = std::size_t{1} * 1024 * 1024;
  // All bodies together that are being read or handled, in bytes; a request that brings more gets 503.
  // Otherwise connections_max times body_bytes_max is what an attacker may make us keep.
  std::size_t bodies_bytes_max = std::size_t{64} * 1024 * 1024;
  // A body, and an answer that is being taken, may stall for this long altogether; beyond that it has to move
  // at the given pace, or 408 (the answer: closed). Bytes per second.
  duration transfer_grace = std::chrono::seconds(10);
  std::size_t transfer_bytes_per_second_min = std::size_t{16} * 1024;

  // Added to every answer that does not have them.
  header_list answer_headers = {{"X-Content-Type-Options", "nosniff"}};

  environment env = {};
};

class server {
 public:
  // Listens and answers from here on.
  server(router routes, const server_options& options = {});
  // Drains with no patience, and waits for the handlers that run, also for those in worker groups.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  const std::string& address() const;
  std::uint16_t port() const;

  // From its return on, requests go by these routes. Those whose headers had come before end with the routes
  // that they began with; handlers, and what they have captured, live until the last of these is answered.
  // Then a thread of the server's destroys them, one router after the other; the end of the server waits for
  // it. Connections stay. Handlers may call it too. If it throws, for want of memory or of that thread,
  // nothing has changed.
  void replace(router routes);

  // Stops accepting, closes connections that are between two requests, lets every request under way end (its
  // answer says `Connection: close`), and returns. What has not ended after `at_most` is asked to stop
  // (request::cancelled) and its connection closed. True if everything ended by itself. Once drained, a
  // server stays so.
  bool drain(duration at_most = std::chrono::seconds(10));

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace settle::inline v0::http

#pragma GCC visibility pop

// HTTP for services: requests and answers as plain values, problem documents, and a router.
//
//   settle::http::router routes;
//   routes.get("/orders/{id}", [&](const settle::http::request& asked) {
//     const auto order = find_order(asked.parameter("id"));
//     if (!order) return settle::http::problem(404, "order_unknown", "there is no such order");
//     return settle::http::text(200, "application/json", *order);
//   });
//   settle::http::server server(std::move(routes), {.port = 8080});      // settle/http_server.hpp
//
// Nothing here knows a socket, so the same handlers and middleware can stand behind any server: build a
// request, call router::handle(), take the response.
//
// Threads: values are values; a router is built by one thread and then only read. Handlers are called by many
// threads at once.
//
// Errors: a handler may throw. settle::error that is retryable becomes 503 with Retry-After and the error's
// code; everything else becomes 500, logged as an error, with nothing of its text in the answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "settle/environment.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct origin;

namespace http {

class [[gnu::visibility("hidden")]] workers;

struct field {
  std::string_view name;
  std::string_view value;
};

// Header fields in the order in which they came; a name may come several times and is found in any case.
// One buffer holds all the text, so views are valid until the list changes.
class header_list {
 public:
  header_list() = default;
  header_list(std::initializer_list<field> fields);

  void add(std::string_view name, std::string_view value);  // beside those of the same name
  void set(std::string_view name, std::string_view value);  // instead of those of the same name
  void remove(std::string_view name);
  void clear();

  std::optional<std::string_view> find(std::string_view name) const;  // the first one
  std::vector<std::string_view> all(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name).has_value(); }

  std::size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }
  field operator[](std::size_t index) const;

  class iterator {
   public:
    using value_type = field;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    iterator() = default;
    iterator(const header_list& of, std::size_t at) : of_(&of), at_(at) {}
    field operator*() const { return (*of_)[at_]; }
    iterator& operator++() { return ++at_, *this; }
    iterator operator++(int) { return {*of_, at_++}; }
    bool operator==(const iterator& other) const { return at_ == other.at_; }

   private:
    const header_list* of_ = nullptr;
    std::size_t at_ = 0;
  };
  iterator begin() const { return {*this, 0}; }
  iterator end() const { return {*this, size()}; }

 private:
  struct place {
    std::uint32_t at, name_bytes, value_bytes;
  };
  std::string text_;
  std::vector<place> places_;
};

// Whether two header names, methods of a list or codings are the same one: ASCII letters in any case.
bool same_name(std::string_view a, std::string_view b);

// W3C trace context as the caller sent it; both are empty unless `traceparent` is valid, and tracestate alone
// is empty if it is not.
struct trace_context {
  std::string traceparent = {};
  std::string tracestate = {};
};
trace_context read_trace(const header_list& headers);

struct path_parameter {
  std::string name;
  std::string value;
};

struct request {
  std::string method = {};                           // as sent: "GET"
  std::string target = {};                           // as sent: "/orders/a%2Fb?full=1"
  std::string path = {};                             // the target without query, not decoded: "/orders/a%2Fb"
  std::string query = {};                            // what follows the '?', not decoded: "full=1"
  std::vector<path_parameter> path_parameters = {};  // of the route's pattern, decoded
  header_list headers = {};
  std::string body = {};
  std::string remote_address =
      {};  // "127.0.0.1:51234", of the peer that is connected; proxies are not believed
  trace_context trace = {};
  // Asked to stop when the answer is no longer waited for: handler_time_max is over or the server's drain has
  // ended. Work is never cancelled otherwise; a handler that ignores this runs to its end.
  std::stop_token cancelled = {};

  // Decoded; empty if the pattern has no such parameter.
  std::string_view parameter(std::string_view name) const;
  // The first one of that name, decoded ('+' is a space); nothing if there is none or it cannot be decoded.
  std::optional<std::string> query_parameter(std::string_view name) const;
};

// What caused the events of a transaction: `tx.set_cause(http::cause_of(asked))` gives them the caller's
// trace.
origin cause_of(const request& asked);

// Content-Length, Transfer-Encoding, Connection and Date are the server's; what a handler sets there is
// ignored, but for `Connection: close`, which is obeyed.
struct response {
  int status = 200;  // 200 to 599
  header_list headers = {};
  std::string body = {};
};

response text(int status, std::string_view content_type, std::string body);

// The answer of an error (RFC 9457): application/problem+json with title, status, detail and a stable `code`
// for programs, [a-z0-9_]. `instance` says what it is about: the path that was asked for; left out if empty.
response problem(int status, std::string_view code, std::string_view detail, std::string_view instance = {});

// What a status is called: "Not Found". Empty for those that nobody knows.
std::string_view reason_of(int status);

using handler = std::function<response(const request&)>;

// Answers requests that have come together: one answer for each, in their order. What it throws is the answer
// to all of them.
using batch_handler = std::function<std::vector<response>(std::span<const request* const>)>;

// Wraps a handler: takes the one behind it, gives one to be called instead. Wrapped once, when the route is
// added.
using middleware = std::function<handler(handler next)>;

struct worker_group_options {
  // At most so many handlers at once: as many as may hold connections of the database behind them. Up to
  // 1,024.
  std::size_t threads = 4;
  // Requests that wait for a thread. Beyond it: 503 with Retry-After, at once.
  std::size_t queue_max = 64;
  // Bodies of requests that wait here or are being handled, in bytes; beside
  // server_options::bodies_bytes_max, which counts what is being read and what the server's own threads have.
  // Beyond it: 503 with Retry-After. A single body is always taken.
  std::size_t bodies_bytes_max = std::size_t{16} * 1024 * 1024;
};

// Threads of their own for some routes, and a queue of their own in front of them: handlers that wait for
// ever here delay nobody elsewhere.
//
//   namespace http = settle::http;
//   const auto shop = std::make_shared<http::worker_group>(http::worker_group_options{.threads = 8});
//   routes.post("/shop/orders", place_order, {.workers = shop});
//
// A thread is started when a request finds none idle and fewer than `threads` run; so a group that nobody
// asks has none. If one cannot be started, those that run do it all; if there is none at all, the request is
// told 503. Threads that were started stay until the group ends.
//
// One group may serve routes of several routers and servers, and outlive them. It ends with its last
// reference, of which every route that names it has one, and every request that waits or runs has its routes:
// so no handler runs in it then, the end waits for nobody, and it is never brought about by one of its own
// threads. Whoever drops the last reference, also from within a handler of another group, joins threads that
// are idle.
//
// Threads: every member may be called by any thread. Errors: invalid_argument for options outside their
// bounds.
class worker_group {
 public:
  explicit worker_group(const worker_group_options& options = {});
  ~worker_group();
  worker_group(const worker_group&) = delete;
  worker_group& operator=(const worker_group&) = delete;

  std::size_t threads_started() const;
  std::size_t waiting() const;  // requests, for a thread

  workers& inside() const { return *workers_; }

 private:
  std::unique_ptr<workers> workers_;
};

struct route_options {
  // Runs on the thread that does all reading and writing, which saves two handoffs between threads. Only for
  // handlers that never wait: no database, no file, no lock that is kept for long. Everybody waits for them.
  bool quick = false;
  // The largest body of this route instead of the server's. Bytes.
  std::optional<std::size_t> body_bytes_max = std::nullopt;
  // Whose threads run the handler; null: the server's own. Not together with quick. Where there is no server,
  // as in router::handle(), it says nothing.
  std::shared_ptr<worker_group> workers = nullptr;
};

struct batch_options {
  // Most requests per call of a handler behind middleware: they are open one inside the other, on one stack.
  static constexpr std::size_t behind_middleware_max = 256;
  // Requests per call of the handler.
  std::size_t batch_max = 64;
  // Calls at the same time. One makes the largest batches; with two, one can wait for the disk while the
  // other computes. A further call begins when at least half a batch waits.
  std::size_t at_once_max = 1;
  // As route_options has them.
  std::optional<std::size_t> body_bytes_max = std::nullopt;
  std::shared_ptr<worker_group> workers = nullptr;
};

// Routes by method and path. A pattern is a path whose segments are literal or a parameter, `/orders/{id}`; a
// parameter is a whole segment and never empty. Where several patterns fit, the one whose first differing
// segment is literal wins, in whatever order they were added. GET also answers HEAD. Unknown paths are
// answered with 404, other methods with 405 and Allow.
class router {
 public:
  router();
  ~router();
  router(router&&) noexcept;
  router& operator=(router&&) noexcept;

  // Throws invalid_argument for a pattern that makes no sense or a route that is there already.
  router& add(std::string_view method, std::string_view pattern, handler what,
              const route_options& options = {});
  router& get(std::string_view pattern, handler what, const route_options& options = {});
  router& post(std::string_view pattern, handler what, const route_options& options = {});
  router& put(std::string_view pattern, handler what, const route_options& options = {});
  router& patch(std::string_view pattern, handler what, const route_options& options = {});
  router& del(std::string_view pattern, handler what, const route_options& options = {});

  // Routes for POST whose requests are answered together: those that arrive while the handler is at work, on
  // any of the patterns, are the next call's. So one transaction can serve everybody who waits.
  // request::cancelled says nothing there. Middleware is asked for each request, as everywhere; that of
  // requests which are answered together runs on one thread, the next one's begins when the one before calls
  // on. So it must not call on with a lock or a transaction open: the next one would wait for it forever.
  router& post_batched(std::initializer_list<std::string_view> patterns, batch_handler what,
                       const batch_options& options = {});

  // Wraps the handlers of all routes that are added after it. The first one is the outermost.
  router& use(middleware what);

  // Answers one request on the caller's thread, exceptions included: for tests, and for other servers. Needs
  // method, target (or path), headers and body.
  response handle(request asked, const environment& env = {}) const;

  class [[gnu::visibility("hidden")]] table;
  const table& routes() const { return *table_; }
  table& routes() { return *table_; }

 private:
  std::unique_ptr<table> table_;
};

}  // namespace http
}  // namespace settle::inline v0

#pragma GCC visibility pop

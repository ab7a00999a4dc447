#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "base/zoo.hpp"
#include "http/answer_parser.hpp"
#include "http/connection_pool.hpp"
#include "http/shared.hpp"
#include "settle/error.hpp"
#include "settle/http_client.hpp"
#include "settle/metrics.hpp"

namespace settle::inline v0::http {
namespace {

constexpr std::array own_headers{
    "Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "TE", "Trailer", "Upgrade"};
// Asking twice is asking once (RFC 9110, 9.2.1).
constexpr std::array safe_methods{"GET", "HEAD", "OPTIONS"};
// Without a body they say so.
constexpr std::array methods_with_body{"POST", "PUT", "PATCH"};

[[noreturn]] void refuse(std::string_view what) { throw error(errc::invalid_argument, std::string(what)); }

void check(const client_options& options) {
  if (options.connections_per_host_max < 1 || options.connections_max < 1)
    refuse("client_options: a client needs a connection");
  if (options.idle_time_max < duration::zero() || options.connect_time_max <= duration::zero() ||
      options.time_max <= duration::zero())
    refuse("client_options: times must be positive");
  if (options.answer_head_bytes_max < 1 || options.answer_header_count_max < 1)
    refuse("client_options: an answer has a head");
}

void check(const client_request& what) {
  if (!is_token(what.method)) refuse("client_request.method is no token");
  if (what.method == "CONNECT") refuse("client_request.method: CONNECT is for proxies");
  if (what.time_max && *what.time_max <= duration::zero()) refuse("client_request.time_max must be positive");
  for (const auto one : what.headers) {
    if (!is_token(one.name) || !is_field_value(one.value))
      refuse("client_request.headers: a name is no token, or a value has a control character");
    if (std::ranges::any_of(own_headers, [&](const char* own) { return same_name(own, one.name); }))
      refuse(fmt::format("client_request.headers: {} is written by the client", one.name));
  }
}

std::string written(const client_request& what, const client_target& to) {
  auto text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", what.method, to.path, to.authority);
  for (const auto one : what.headers) text.append(one.name).append(": ").append(one.value).append("\r\n");
  if (!what.body.empty() || std::ranges::count(methods_with_body, what.method) > 0)
    text.append(fmt::format("Content-Length: {}\r\n", what.body.size()));
  return text.append("\r\n").append(what.body);
}

// What became of a request on one connection.
struct tried {
  mishap failed = {};
  bool sent = false;   // a byte of it
  bool heard = false;  // a byte of an answer
  bool keep = false;
  response answer = {};
};

mishap fault_of(const answer_parser& parser) {
  const bool large = parser.reached() == answer_parser::step::too_large;
  return {large ? trouble::too_large : trouble::malformed, std::string(parser.why())};
}

// Sends and listens at once: a server may answer, and close, before it has read everything.
tried exchange(client_line& line, const std::string& text, answer_parser parser, const time_limit& limit) {
  using step = answer_parser::step;
  using state = client_line::state;
  tried made;
  made.failed = line.put(text);
  auto sending = made.failed ? state::ended : state::wait;
  while (!made.failed) {
    if (sending == state::wait) sending = line.flush();
    made.sent = line.has_sent();
    if (sending == state::ended && !made.sent) {
      made.failed = {trouble::ended, line.detail()};
      break;
    }
    const auto ready =
        limit.wait(line.socket(), sending == state::wait ? POLLIN | POLLOUT : POLLIN, limit.until());
    if (ready != waited::ready) {
      made.failed = ready == waited::late ? mishap{trouble::late, "no answer in time"}
                                          : mishap{trouble::stopped, "stopped while waiting for the answer"};
      break;
    }
    std::string came;
    const auto got = line.read(came);
    const auto taken = parser.feed(came);
    made.heard = parser.is_begun();
    const bool over = got == state::ended;
    const auto reached = over && line.ended_well() ? parser.end() : parser.reached();
    if (reached == step::done) {
      made.answer = std::move(parser.answer());
      made.keep = parser.keeps_connection() && taken == came.size() && sending == state::done && !over;
      break;
    }
    if (reached != step::more)
      made.failed = fault_of(parser);
    else if (over)
      made.failed = {trouble::ended, line.detail()};
  }
  return made;
}

}  // namespace

class client::state {
 public:
  explicit state(const client_options& options)
      : options_(options),
        pool_({options.connections_per_host_max, options.connections_max, options.idle_time_max}) {
    check(options);
    const bool names_files =
        !options.ca_file.empty() || !options.certificate_file.empty() || !options.key_file.empty();
    if (names_files) tls();
  }

  client_result send(const client_request& what, const std::stop_token& stop) {
    check(what);
    const auto to = read_target(what.url);
    const auto begun = steady::now();
    auto result = with_fault_points(env(), "http.send", [&] {
      return deliver(what, to, time_limit(what.time_max.value_or(options_.time_max), stop));
    });
    time_counts took;
    took.add(std::chrono::duration_cast<duration>(steady::now() - begun));
    env().counters->add("settle_http_client_requests_total",
                        {{"outcome", to_string(result.how)}, {"trouble", to_string(result.why)}});
    env().counters->add_times("settle_http_client_request_seconds", {{"outcome", to_string(result.how)}},
                              took);
    return result;
  }

  const environment& env() const { return options_.env; }
  connection_pool& pool() { return pool_; }

 private:
  client_result deliver(const client_request& what, const client_target& to, const time_limit& limit) {
    const auto text = written(what, to);
    auto lease = pool_.take(to.origin(), limit);
    if (!lease || stop_requested(limit)) return failed(false, no_connection(limit));
    bool kept = lease.line != nullptr && lease.line->is_quiet();
    bool sent = false;
    while (true) {
      if (!kept)
        if (auto why = reopen(lease, to, limit)) return failed(sent, std::move(why));
      auto made = exchange(*lease.line, text, parser_for(what), limit);
      const bool closed_before = kept && made.failed.why == trouble::ended && !made.heard;
      sent = sent || made.sent;
      kept = false;
      const bool harmless = !made.sent || is_repeatable(what) || zoo::has(zoo::bug::request_sent_again);
      if (closed_before && harmless) continue;
      if (made.failed) return failed(sent, std::move(made.failed));
      lease.keep = made.keep;
      return {.how = delivery::answered, .answer = std::move(made.answer)};
    }
  }

  static client_result failed(bool sent, mishap why) {
    return {.how = sent ? delivery::unknown : delivery::not_sent,
            .why = why.why,
            .detail = std::move(why.detail)};
  }

  static bool stop_requested(const time_limit& limit) { return limit.stop().stop_requested(); }

  static mishap no_connection(const time_limit& limit) {
    if (stop_requested(limit)) return {trouble::stopped, "stopped while waiting for a connection"};
    return {trouble::no_connection_free, "all connections that may be open were in use"};
  }

  static bool is_repeatable(const client_request& what) {
    return what.repeatable || std::ranges::count(safe_methods, what.method) > 0;
  }

  mishap reopen(connection_pool::lease& lease, const client_target& to, const time_limit& limit) {
    lease.line.reset();
    auto opened = open_line(to, names_, to.tls ? &tls() : nullptr, limit, options_.connect_time_max);
    if (opened.failed) return std::move(opened.failed);
    lease.line = std::move(opened.line);
    env().counters->add("settle_http_client_connections_total", {});
    return {};
  }

  // The system's authorities take a tenth of a second to read, which who never speaks TLS need not wait for.
  const tls_context& tls() {
    std::call_once(tls_made_, [this] { tls_.emplace(options_); });
    return *tls_;
  }

  answer_parser parser_for(const client_request& what) const {
    return {{options_.answer_head_bytes_max, options_.answer_header_count_max,
             what.answer_body_bytes_max.value_or(options_.answer_body_bytes_max)},
            what.method == "HEAD"};
  }

  const client_options options_;
  std::once_flag tls_made_;
  std::optional<tls_context> tls_;
  lookup names_;
  connection_pool pool_;
};

std::string_view to_string(delivery of) {
  switch (of) {
    case delivery::answered:
      return "answered";
    case delivery::not_sent:
      return "not_sent";
    case delivery::unknown:
      break;
  }
  return "unknown";
}

std::string_view to_string(trouble of) {
  switch (of) {
    case trouble::none:
      return "none";
    case trouble::no_connection_free:
      return "no_connection_free";
    case trouble::name_not_found:
      return "name_not_found";
    case trouble::cannot_connect:
      return "cannot_connect";
    case trouble::tls_refused:
      return "tls_refused";
    case trouble::late:
      return "late";
    case trouble::ended:
      return "ended";
    case trouble::malformed:
      return "malformed";
    case trouble::too_large:
      return "too_large";
    case trouble::stopped:
      break;
  }
  return "stopped";
}

client::client(const client_options& options) : state_(std::make_unique<state>(options)) {}
client::~client() = default;
client_result client::send(const client_request& what, const std::stop_token& stop) const {
  return state_->send(what, stop);
}
std::size_t client::connections() const { return state_->pool().open(); }
void client::close_idle() const { state_->pool().close_idle(); }
const environment& client::env() const { return state_->env(); }

}  // namespace settle::inline v0::http

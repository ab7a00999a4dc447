// Settle's handlers behind a Boost.Beast server of your own: its requests as settle::http::request, and the
// answers back.
//
//   const auto orders = settle::http::idempotent(*db, policy, place_order);      // settle/http_once.hpp
//   …
//   http::request<http::string_body> asked;
//   http::read(stream, buffer, asked);
//   http::write(stream, settle::http::to_beast(orders(settle::http::from_beast(asked)), asked));
//
// Or with Settle's router, which also answers what is thrown (503 with Retry-After while the store is away):
//
//   http::write(stream, settle::http::to_beast(routes.handle(settle::http::from_beast(asked)), asked));
//
// A handler that is called without a router throws what it throws: answer a settle::error that is retryable()
// with 503, and everything else with 500.
//
// These are plain conversions: reading, limits, timeouts and threads are your server's. Handlers wait for the
// database, so call them on a thread that may wait, not on the one that runs the io_context.
//
// Errors: to_beast throws invalid_argument for an answer that cannot be sent: a status that is none, a header
// with a line break.
#pragma once

#include <algorithm>
#include <boost/beast/http.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settle/error.hpp"
#include "settle/http.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::http {

using beast_request = boost::beast::http::request<boost::beast::http::string_body>;
using beast_response = boost::beast::http::response<boost::beast::http::string_body>;

// What your server knows of a request beside its bytes. Handlers find the parameters by request::parameter();
// nobody but you can set them, so the caller that you have authenticated may be one, `{{"caller", user}}`,
// for a policy whose `caller` is `[](const auto& asked) { return std::string(asked.parameter("caller")); }`.
// Refuse those whom you do not know before that. The router puts the parameters of its own pattern in their
// place.
struct beast_context {
  std::vector<path_parameter> parameters = {};
  std::string remote_address = {};
};

namespace detail {

inline std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }
inline boost::beast::string_view beast_view(std::string_view text) { return {text.data(), text.size()}; }

inline bool is_the_servers(std::string_view name) {
  constexpr std::string_view names[] = {"Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive"};
  return std::ranges::any_of(names, [&](std::string_view one) { return same_name(one, name); });
}

// Beast writes what it is given: a line break would begin a header of somebody else's.
inline void check_field(const field& one) {
  const auto is_control = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  };
  const auto ends_name = [&](char c) { return is_control(c) || c == ' ' || c == '\t' || c == ':'; };
  if (one.name.empty() || std::ranges::any_of(one.name, ends_name) ||
      std::ranges::any_of(one.value, is_control))
    throw error(errc::invalid_argument, "a header of the answer cannot be sent");
}

}  // namespace detail

// Headers keep their order, also those that come several times. Takes a copy of the request; move it in if
// you do not need it any more (to_beast asks for its version, method and keep-alive).
inline request from_beast(beast_request asked, beast_context known = {}) {
  request made;
  made.method = detail::view(asked.method_string());
  made.target = detail::view(asked.target());
  const auto query = made.target.find('?');
  made.path = made.target.substr(0, query);
  if (query != std::string::npos) made.query = made.target.substr(query + 1);
  for (const auto& one : asked) made.headers.add(detail::view(one.name_string()), detail::view(one.value()));
  made.trace = read_trace(made.headers);
  made.path_parameters = std::move(known.parameters);
  made.remote_address = std::move(known.remote_address);
  made.body = std::move(asked.body());
  return made;
}

// Version and keep-alive are those of the request, unless the answer says `Connection: close`; Content-Length
// is set. An answer to HEAD has the length of the body and not the body; 204 and 304 have none.
inline beast_response to_beast(response answer, const beast_request& asked) {
  if (answer.status < 200 || answer.status > 599)
    throw error(errc::invalid_argument, "the status of an answer is 200 to 599");
  const auto status = static_cast<unsigned>(answer.status);
  beast_response made(static_cast<boost::beast::http::status>(status), asked.version());
  for (const auto one : answer.headers) {
    detail::check_field(one);
    if (!detail::is_the_servers(one.name))
      made.insert(detail::beast_view(one.name), detail::beast_view(one.value));
  }
  const auto connection = answer.headers.find("Connection");
  made.keep_alive(asked.keep_alive() && !(connection && same_name(*connection, "close")));
  if (status == 204 || status == 304) return made;
  if (asked.method() == boost::beast::http::verb::head) {
    made.content_length(answer.body.size());
    return made;
  }
  made.body() = std::move(answer.body);
  made.prepare_payload();
  return made;
}

}  // namespace settle::inline v0::http

#pragma GCC visibility pop

// Steps of sagas over HTTP, and the routes that they ask.
//
//   settle::http::client bank({.time_max = std::chrono::seconds(5)});   // outlives the host
//
//   const auto charge =
//       settle::http_step<std::string>("charge_payment", bank, charge_request)
//           .undo(settle::http_undo(bank, refund_request));
//
//   charge_request(const order&) and refund_request(const order&, const std::optional<std::string>& charge)
//   return a settle::http::client_request:
//     {.method = "POST", .url = "http://bank/charges", .body = json_of(o)}
//
//   // On the other side:
//   routes.post("/charges", settle::http::participant(*db, [](const auto& asked, const auto&, auto& tx) {
//     return settle::http::text(201, "text/plain", charge_card(tx, asked.body));
//   }));
//
// Every attempt carries, beside what the function has written:
//   Idempotency-Key   call::key(): the same for every attempt, another one for the undo
//   Saga-Id, Saga-Step, Saga-Op, Saga-Epoch
//                     what participate() wants to know; Saga-Op is "do" or "undo", and Saga-Step is
//                     percent-encoded
//   traceparent       one trace for all calls of a saga, unless the function has set it
//
// What an attempt is taken for:
//   | 2xx | done; the result is read from the body |
//   | 401, 407, 423, 429 | certainly not done, tried again; Retry-After is the least wait, up to an hour |
//   | not sent (no connection, no name, TLS refused) | the same |
//   | other 4xx, but 408, 409 and 425 | refused: it was not done, and never will be |
//   | everything else: 408, 409, 425, 3xx, 5xx, no whole answer in time, a result that cannot be read
//   | nobody knows, see on_unknown() |
//
// An undo is judged in the same way, so "there is nothing to undo" has to be answered with 2xx (participant()
// does), or its status named in http_call_options::also_done.
//
// An attempt takes at most client_request::time_max, or the client's, and a thread of the host meanwhile:
// saga_host_options::call_threads is how many calls there are at a time.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "settle/database.hpp"
#include "settle/http.hpp"
#include "settle/http_client.hpp"
#include "settle/participate.hpp"
#include "settle/saga_step.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct http_call_options {
  // Statuses that mean that it is done, beside 2xx: 404 for the undo of a foreign service, say.
  std::vector<int> also_done = {};
};

// What is known after an attempt; the table above.
enum class http_verdict { done, refused, not_made, unknown };
http_verdict judge(const http::client_result& result, const http_call_options& options = {});

namespace detail {

// One attempt: the answer if it was done; throws what the engine goes by.
http::response http_call(const http::client& by, const call& via, http::client_request what,
                         const http_call_options& options);

// A question about a step: done, with the answer; never (410); else unknown.
std::pair<finding, http::response> http_question(const http::client& by, const call& via,
                                                 http::client_request what);

template <class F>
using result_of_make = typename signature<F>::result;

template <class F>
struct all_arguments {
  template <class First, class... Rest>
  static std::tuple<std::remove_cvref_t<First>, Rest...> join(std::type_identity<First>,
                                                              std::type_identity<std::tuple<Rest...>>);
  using type = decltype(join(std::type_identity<typename signature<F>::first>(),
                             std::type_identity<typename signature<F>::arguments>()));
};

template <class R>
R read_answer(const http::response& answer) {
  if constexpr (!std::is_void_v<R>) return read_stored<R>(answer.body);
}

template <class R, class Make, class Read, class... Args>
auto make_http_step(std::string_view name, const http::client& by, Make make, Read read,
                    http_call_options options, std::type_identity<std::tuple<Args...>>) {
  auto work = [&by, make = std::move(make), read = std::move(read), options = std::move(options)](
                  call& via, const Args&... args) -> R {
    return read(http_call(by, via, make(args...), options));
  };
  return make_step<call, R>(name, std::move(work), std::type_identity<std::tuple<Args...>>());
}

template <class T>
constexpr std::string_view content_type_of() {
  if constexpr (requires { codec<T>::content_type; })
    return codec<T>::content_type;
  else
    return "text/plain";
}

}  // namespace detail

// A step that sends what `make` returns for the step's arguments, (const Arguments&...) → client_request. Its
// result is an R as it is stored, read from the body of the answer; none without R.
template <class R = void, class Make>
auto http_step(std::string_view name, const http::client& by, Make make,
               const http_call_options& options = {}) {
  static_assert(std::same_as<detail::result_of_make<Make>, http::client_request>,
                "settle: the function of an HTTP step takes (const Arguments&...) and returns a "
                "settle::http::client_request");
  return detail::make_http_step<R>(name, by, std::move(make), detail::read_answer<R>, options,
                                   std::type_identity<typename detail::all_arguments<Make>::type>());
}

// The same with a function that reads the answer: (const http::response&) → result. What it throws makes the
// outcome unknown: it was done, but nobody can tell how.
template <class Make, class Read>
  requires std::invocable<const Read&, const http::response&>
auto http_step(std::string_view name, const http::client& by, Make make, Read read,
               const http_call_options& options = {}) {
  using result = std::remove_cvref_t<std::invoke_result_t<const Read&, const http::response&>>;
  return detail::make_http_step<result>(name, by, std::move(make), std::move(read), options,
                                        std::type_identity<typename detail::all_arguments<Make>::type>());
}

// A step that posts its argument as it is stored, with the content type of its codec. `url` is a text, or a
// function of the argument: (const In&) → std::string.
template <class In, class R = void, class Url>
auto http_post(std::string_view name, const http::client& by, Url url,
               const http_call_options& options = {}) {
  auto make = [url = std::move(url)](const In& in) -> http::client_request {
    http::client_request what;
    what.method = "POST";
    if constexpr (std::is_invocable_v<const Url&, const In&>)
      what.url = url(in);
    else
      what.url = url;
    what.headers.add("Content-Type", detail::content_type_of<In>());
    what.body = detail::store(in);
    return what;
  };
  return http_step<R>(name, by, std::move(make), options);
}

// For undo(): sends what `make` returns for the step's arguments and, if it takes it, the optional result.
template <class Make>
auto http_undo(const http::client& by, Make make, const http_call_options& options = {}) {
  return [&by, make = std::move(make), options]<class... Given>(call& via, const Given&... given)
    requires std::invocable<const Make&, const Given&...>
  { detail::http_call(by, via, make(given...), options); };
}

// For on_unknown(unknown::ask, …): asks a URL for what became of the step. 2xx: it was done, and the result
// is in the body. 410: it was not, and the other side will refuse it. Everything else, also 404: nobody knows
// yet, because the call may still arrive; it is asked again.
template <class R = void, class Url>
auto http_find(const http::client& by, Url url) {
  return [&by, url = std::move(url)]<class... Given>(call& via, const Given&... given) -> found_step<R>
           requires std::is_invocable_r_v<std::string, const Url&, const Given&...>
  {
    const auto [what, answer] = detail::http_question(by, via, {.method = "GET", .url = url(given...)});
    found_step<R> found;
    found.what = what;
    if constexpr (!std::is_void_v<R>)
      if (what == finding::done) found.result = detail::read_answer<R>(answer);
    return found;
  };
}

namespace http {

// What a participant does for one call of a saga, in the transaction of the guard: an action or, if
// saga_call::op says so, its undo.
using participant_handler = std::function<response(const request&, const saga_call&, transaction&)>;

// A route that does every step of a saga once and undoes it once (settle/participate.hpp). Answers below 500
// are recorded and given again to copies, with `Idempotent-Replayed: true`; one of 400 or more leaves nothing
// else behind. Not recorded, and done anew when it comes again: 5xx and what asks to come again (401, 407,
// 408, 409, 423, 425, 429), and of course what the handler throws.
//   nothing to undo                              204
//   an action after its undo                     412 saga_call_late
//   somebody with a higher epoch was here        412 saga_call_stale
//   the headers of a saga are missing or wrong   400 saga_call_missing
handler participant(database& db, participant_handler work);

}  // namespace http
}  // namespace settle::inline v0

#pragma GCC visibility pop

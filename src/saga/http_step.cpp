#include "settle/http_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/encoding.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "http/shared.hpp"
#include "saga/http_headers.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::size_t quoted_bytes_max = 200;  // of an answer, in a message
constexpr duration wait_max = std::chrono::hours(1);

constexpr int gone = 410;

// The trace of a saga has its id, so that whoever knows one finds the other.
std::string traceparent_of(const call& via) {
  const auto bytes = via.saga().value().bytes();
  const auto trace = to_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto span = stable_hash(fmt::format("{} {}", via.key(), via.epoch()));
  return fmt::format("00-{}-{:016x}-01", trace, std::max<std::uint64_t>(span, 1));
}

http::client_result send(const http::client& by, const call& via, http::client_request what) {
  what.headers.set("Idempotency-Key", via.key());
  sagas::write_call(what.headers,
                    {via.saga(), via.step(), via.is_undo() ? saga_op::undo : saga_op::act, via.epoch()});
  if (!what.headers.contains("traceparent")) what.headers.set("traceparent", traceparent_of(via));
  return by.send(what);
}

// As it is stored with the saga and shown to people.
std::string reason_of(const http::client_result& result) {
  if (!result.answered()) return fmt::format("{}: {}", http::to_string(result.why), result.detail);
  const auto said = one_line(result.answer.body, quoted_bytes_max);
  return fmt::format("{} {}{}{}", result.answer.status, http::reason_of(result.answer.status),
                     said.empty() ? "" : ": ", said);
}

duration wait_of(const http::client_result& result, timestamp now) {
  const auto& headers = result.answer.headers;
  const auto wait = http::read_retry_after(headers.find("Retry-After").value_or(""),
                                           headers.find("Date").value_or(""), now);
  return std::clamp(wait.value_or(duration::zero()), duration::zero(), wait_max);
}

}  // namespace

http_verdict judge(const http::client_result& result, const http_call_options& options) {
  if (result.how == http::delivery::not_sent) return http_verdict::not_made;
  if (result.how == http::delivery::unknown) return http_verdict::unknown;
  const int status = result.answer.status;
  if ((status >= 200 && status < 300) || std::ranges::count(options.also_done, status) > 0)
    return http_verdict::done;
  switch (status) {
    case 401:
    case 407:
    case 423:
    case 429:
      return http_verdict::not_made;
    case 408:
    case 409:
    case 425:
      return http_verdict::unknown;
    default:
      return status >= 400 && status < 500 ? http_verdict::refused : http_verdict::unknown;
  }
}

namespace detail {

http::response http_call(const http::client& by, const call& via, http::client_request what,
                         const http_call_options& options) {
  auto result = send(by, via, std::move(what));
  switch (judge(result, options)) {
    case http_verdict::done:
      return std::move(result.answer);
    case http_verdict::refused:
      throw step_refused(reason_of(result));
    case http_verdict::not_made:
      throw call_not_made(reason_of(result), wait_of(result, by.env().now()));
    case http_verdict::unknown:
      break;
  }
  throw call_unknown(reason_of(result), wait_of(result, by.env().now()));
}

std::pair<finding, http::response> http_question(const http::client& by, const call& via,
                                                 http::client_request what) {
  auto result = send(by, via, std::move(what));
  if (result.answered() && result.answer.status == gone) return {finding::never, {}};
  switch (judge(result)) {
    case http_verdict::done:
      return {finding::done, std::move(result.answer)};
    case http_verdict::not_made:
      throw call_not_made(reason_of(result), wait_of(result, by.env().now()));
    default:
      return {finding::unknown, {}};
  }
}

}  // namespace detail
}  // namespace settle::inline v0

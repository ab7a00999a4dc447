#include <optional>
#include <stdexcept>

#include "http/routes.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::http {
namespace {

void log_failure(const environment& env, std::string_view pattern, std::string_view why) {
  env.log->write(log_level::error, "http_handler_failed",
                 {{"route", std::string(pattern)}, {"error", std::string(why)}});
}

// Logs the exception that is being handled. Says what it was if the same request may succeed later.
std::optional<errc> passing_failure(const environment& env, std::string_view pattern) try {
  throw;
} catch (const error& e) {
  log_failure(env, pattern, e.what());
  return e.retryable() ? std::optional(e.code()) : std::nullopt;
} catch (const std::exception& e) {
  log_failure(env, pattern, e.what());
  return std::nullopt;
} catch (...) {
  log_failure(env, pattern, "something that is no std::exception");
  return std::nullopt;
}

response failed(std::optional<errc> passing, const request& asked) {
  if (!passing) return problem(500, "internal_error", "the service failed; its log says why", asked.path);
  auto answer = problem(503, to_string(*passing),
                        "the service cannot do this now; try again with the same key", asked.path);
  answer.headers.set("Retry-After", "1");
  return answer;
}

}  // namespace

response not_found(const request& asked) {
  return problem(404, "not_found", "there is nothing at this path", asked.path);
}

response not_allowed(const request& asked, const path_routes& path) {
  auto answer = problem(405, "method_not_allowed", "this path answers " + path.allow, asked.path);
  answer.headers.set("Allow", path.allow);
  return answer;
}

response answer_of(const handler& what, const request& asked, const environment& env,
                   std::string_view pattern) try {
  return what(asked);
} catch (...) {
  return failed(passing_failure(env, pattern), asked);
}

std::vector<response> answers_of(const batch_handler& what, std::span<const request* const> asked,
                                 const environment& env, std::string_view pattern) try {
  auto answers = what(asked);
  if (answers.size() != asked.size())
    throw std::logic_error("a batch handler gives an answer for each request");
  return answers;
} catch (...) {
  const auto passing = passing_failure(env, pattern);
  std::vector<response> answers;
  for (const auto* one : asked) answers.push_back(failed(passing, *one));
  return answers;
}

}  // namespace settle::inline v0::http

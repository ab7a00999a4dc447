#include <stdexcept>

#include "http/routes.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::http {
namespace {

void log_failure(const environment& env, std::string_view pattern, std::string_view why) {
  env.log->write(log_level::error, "http_handler_failed",
                 {{"route", std::string(pattern)}, {"error", std::string(why)}});
}

response try_again(const error& why) {
  auto answer =
      problem(503, to_string(why.code()), "the service cannot do this now; try again with the same key");
  answer.headers.set("Retry-After", "1");
  return answer;
}

response broken() { return problem(500, "internal_error", "the service failed; its log says why"); }

// Of the exception that is being handled.
response answer_of_failure(const environment& env, std::string_view pattern) try {
  throw;
} catch (const error& e) {
  log_failure(env, pattern, e.what());
  return e.retryable() ? try_again(e) : broken();
} catch (const std::exception& e) {
  log_failure(env, pattern, e.what());
  return broken();
} catch (...) {
  log_failure(env, pattern, "something that is no std::exception");
  return broken();
}

}  // namespace

response not_found() { return problem(404, "not_found", "there is nothing at this path"); }

response not_allowed(const path_routes& path) {
  auto answer = problem(405, "method_not_allowed", "this path answers " + path.allow);
  answer.headers.set("Allow", path.allow);
  return answer;
}

response answer_of(const handler& what, const request& asked, const environment& env,
                   std::string_view pattern) try {
  return what(asked);
} catch (...) {
  return answer_of_failure(env, pattern);
}

std::vector<response> answers_of(const batch_handler& what, std::span<const request* const> asked,
                                 const environment& env, std::string_view pattern) try {
  auto answers = what(asked);
  if (answers.size() != asked.size())
    throw std::logic_error("a batch handler gives an answer for each request");
  return answers;
} catch (...) {
  return std::vector<response>(asked.size(), answer_of_failure(env, pattern));
}

}  // namespace settle::inline v0::http

#include <new>
#include <stdexcept>

#include "base/if_possible.hpp"
#include "http/batch_round.hpp"
#include "http/routes.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::http {
namespace {

constexpr std::string_view no_memory = "memory_full";

void log_failure(const environment& env, std::string_view pattern, std::string_view why) {
  if_possible([&] {
    env.log->write(log_level::error, "http_handler_failed",
                   {{"route", std::string(pattern)}, {"error", std::string(why)}});
  });
}

// Logs the exception that is being handled; one that passes, like an outage of a store, not each time. Says
// what it was if the same request may succeed later; empty: no.
std::string_view passing_failure(const environment& env, const path_routes& on) noexcept try {
  throw;
} catch (const error& e) {
  if (!e.retryable() || on.outages.fails(env.now())) log_failure(env, on.pattern, e.what());
  return e.retryable() ? to_string(e.code()) : std::string_view();
} catch (const std::bad_alloc&) {
  if (on.outages.fails(env.now())) log_failure(env, on.pattern, "out of memory");
  return no_memory;
} catch (const std::exception& e) {
  log_failure(env, on.pattern, e.what());
  return {};
} catch (...) {
  log_failure(env, on.pattern, "something that is no std::exception");
  return {};
}

response failed(std::string_view passing, const request& asked) {
  if (passing.empty())
    return problem(500, "internal_error", "the service failed; its log says why", asked.path);
  auto answer =
      problem(503, passing, "the service cannot do this now; try again with the same key", asked.path);
  answer.headers.set("Retry-After", "1");
  return answer;
}

// Needs memory as well; without any, the status alone has to do.
response failed_if_possible(std::string_view passing, const request& asked) noexcept {
  try {
    return failed(passing, asked);
  } catch (...) {
    return bare_refusal();
  }
}

}  // namespace

bool outage_lines::fails(timestamp now) noexcept {
  const std::scoped_lock lock(mutex_);
  lasts_ = true;
  return log_.fails(now);
}

void outage_lines::works(timestamp now) noexcept {
  if (!lasts_) return;
  const std::scoped_lock lock(mutex_);
  lasts_ = false;
  log_.works(now);
}

response not_found(const request& asked) {
  return problem(404, "not_found", "there is nothing at this path", asked.path);
}

response not_allowed(const request& asked, const path_routes& path) {
  auto answer = problem(405, "method_not_allowed", "this path answers " + path.allow, asked.path);
  answer.headers.set("Allow", path.allow);
  return answer;
}

response answer_of(const handler& what, const request& asked, const environment& env,
                   const path_routes& on) noexcept {
  try {
    auto answer = what(asked);
    on.outages.works(env.now());
    return answer;
  } catch (...) {
    return failed_if_possible(passing_failure(env, on), asked);
  }
}

std::vector<response> answers_of(const batch& of, std::span<const request* const> asked,
                                 const environment& env, const path_routes& on) noexcept {
  std::string_view passing;
  try {
    if (of.each) return batch_round(of, asked, env, on).run();
    auto answers = of.what(asked);
    if (answers.size() != asked.size())
      throw std::logic_error("a batch handler gives an answer for each request");
    on.outages.works(env.now());
    return answers;
  } catch (...) {
    passing = passing_failure(env, on);
  }
  std::vector<response> answers;
  if_possible([&] { answers.resize(asked.size(), bare_refusal()); });
  for (std::size_t n = 0; n < answers.size(); ++n) answers[n] = failed_if_possible(passing, *asked[n]);
  return answers;
}

}  // namespace settle::inline v0::http

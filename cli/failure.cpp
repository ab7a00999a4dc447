#include "cli/failure.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>

#include "cli/hints.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

struct described {
  std::string_view code;
  std::string_view message;
  bool retryable = false;
  bool outcome_unknown = false;
};

void write(const described& what, const told_as& how) {
  const auto message = with_given(what.message, how.given);
  if (how.json) {
    boost::json::object about{
        {"code", what.code}, {"message", safe_json_text(message)}, {"retryable", what.retryable}};
    if (what.outcome_unknown) about["outcome_unknown"] = true;
    if (!how.done.empty()) about["done"] = safe_json_text(how.done);
    fmt::print(stderr, "{}\n", boost::json::serialize(boost::json::object{{"error", about}}));
  } else {
    const auto before = how.done.empty() ? std::string() : fmt::format("; done before that: {}", how.done);
    fmt::print(stderr, "settle: {}\n", for_terminal(message + before));
  }
}

int write_and_choose(const described& what, const told_as& how) {
  write(what, how);
  return what.retryable ? exit_retry : exit_invalid;
}

}  // namespace

int report(const failure& what, const told_as& how) {
  return write_and_choose({to_string(what.code()), what.what(), info(what.code()).retryable}, how);
}

int report(const error& what, const told_as& how) {
  return write_and_choose({to_string(what.code()), what.what(), what.retryable(), what.outcome_unknown()},
                          how);
}

int report_usage(std::string_view message, bool json) {
  return write_and_choose({"usage", message}, {.json = json});
}

int report_unexpected(std::string_view message, const told_as& how) {
  return write_and_choose({"unexpected", message}, how);
}

int report_output_failed(std::string_view why, const told_as& how) {
  const auto message = fmt::format("cannot write the output: {}", why);
  write({"output_failed", message}, how);
  return how.done.empty() ? exit_invalid : exit_untold;
}

}  // namespace settle::cli

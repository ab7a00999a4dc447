#include "cli/failure.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>

#include "cli/text.hpp"

namespace settle::cli {
namespace {

struct described {
  std::string_view code;
  std::string_view message;
  bool retryable = false;
  bool outcome_unknown = false;
};

int write(const described& what, bool json) {
  if (json) {
    boost::json::object about{
        {"code", what.code}, {"message", safe_json_text(what.message)}, {"retryable", what.retryable}};
    if (what.outcome_unknown) about["outcome_unknown"] = true;
    fmt::print(stderr, "{}\n", boost::json::serialize(boost::json::object{{"error", about}}));
  } else {
    fmt::print(stderr, "settle: {}\n", for_terminal(what.message));
  }
  return what.retryable ? exit_retry : exit_invalid;
}

}  // namespace

int report(const failure& what, bool json) {
  return write({to_string(what.code()), what.what(), info(what.code()).retryable}, json);
}

int report(const error& what, bool json) {
  return write({to_string(what.code()), what.what(), what.retryable(), what.outcome_unknown()}, json);
}

int report_usage(std::string_view message, bool json) { return write({"usage", message}, json); }

int report_unexpected(std::string_view message, bool json) { return write({"unexpected", message}, json); }

}  // namespace settle::cli

// How a command ends when it cannot do its work: one line on standard error and an exit code.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "settle/error.hpp"

namespace settle::cli {

// Documented in `settle --help`; scripts rely on them.
enum exit_code : int {
  exit_ok = 0,
  exit_found =
      1,  // verify found something lost, doubled, invented or reordered; doctor a problem; a replay stopped
  exit_invalid = 2,  // usage or input: the same call will fail again
  exit_retry = 3,    // store unavailable or busy: the same call may succeed later
  exit_untold = 4,   // done, but the output could not be written: the same call would do it again
};

// A failure in the words of the command line. settle::error is for failures of the library, and its
// advice speaks to programmers; this one tells the person at the terminal what to type.
class failure : public std::runtime_error {
 public:
  failure(errc code, const std::string& message) : std::runtime_error(message), code_(code) {}
  errc code() const noexcept { return code_; }

 private:
  errc code_;
};

// Each writes the failure to standard error, as text or as JSON, and returns the exit code for it. `done` is
// what the call has done before it failed; empty: nothing.
struct told_as {
  bool json = false;
  std::string_view done = {};
  std::string_view given = {};  // options that commands in the message get: see with_given()
};
int report(const failure& what, const told_as& how);
int report(const error& what, const told_as& how);
int report_usage(std::string_view message, bool json);
int report_unexpected(std::string_view message, const told_as& how);
// Everything is done but the output, which standard output does not take.
int report_output_failed(std::string_view why, const told_as& how);

}  // namespace settle::cli

// What a failure says, and whose it is.
#pragma once

#include <exception>
#include <optional>

#include "consume/pauses.hpp"
#include "consume/reporting.hpp"
#include "consume/work.hpp"
#include "settle/consume.hpp"
#include "settle/environment.hpp"

namespace settle::consume {

class failures {
 public:
  failures(const consumer_options& options, const environment& env, reporting& report, pauses& everybodys)
      : options_(options), env_(env), report_(report), pauses_(everybodys) {}

  failed_attempt describe(const std::exception& thrown, const message& m);

  // It has failed with nobody else in its transaction: it is charged, or all wait. The charge is written with
  // the next transaction; if the process ends before, the message is simply tried again.
  void failed_alone(work& one, const failed_attempt& how);

 private:
  std::optional<failure_class> own_class(const std::exception& thrown, const message& m);

  const consumer_options& options_;
  const environment& env_;
  reporting& report_;
  pauses& pauses_;
};

}  // namespace settle::consume

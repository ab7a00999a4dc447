// What a consumer says of its work: counts, metrics and log lines.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/log_limit.hpp"
#include "consume/plan.hpp"
#include "consume/work.hpp"
#include "retry/outage.hpp"
#include "settle/consume.hpp"
#include "settle/dead_letter.hpp"
#include "settle/error.hpp"

namespace settle::consume {

class reporting {
 public:
  reporting(const environment& env, std::string consumer) : env_(env), consumer_(std::move(consumer)) {}

  using counter = std::int64_t consumer_counts::*;
  // An empty metric: it is counted elsewhere.
  void count(std::string_view metric, counter which, std::int64_t by);
  consumer_counts counts() const;

  // A batch has committed, with so many messages of each kind. Of those that were charged, so many have
  // become dead letters, new or old.
  void applied(const std::map<verdict, std::int64_t>& of_each_kind, std::int64_t given_up);
  void skipped(const message& m, verdict why);
  void failed(const work& one, const failed_attempt& how);
  // Not before the commit: what rolls back has not been given up.
  void given_up(const std::vector<dead_letter>& letters);
  void classify_failed(const message& m, std::string_view why);
  void unhandled(const message& parked);

  // Something is away: the consumer's own database or its broker, or what its handlers need.
  void paused(const error& why);
  void paused(const work& one, const failed_attempt& how, const retry::outage& by);
  void resumed(duration after) const;

  // Of one that still runs: it cannot be stopped outside of the database, only kept from committing.
  void handler_is_late(duration limit) const;
  void careful_with(std::string_view partition, std::size_t messages) const;
  void has_another_owner(std::string_view partition) const;
  // While the consumer goes, what harms nobody if it is not done.
  void end_of_work_not_noted(std::string_view why) const noexcept;
  void acknowledge_failed(std::string_view why) const noexcept;

 private:
  bool may_log(log_level level, std::string_view event);

  const environment& env_;
  std::string consumer_;
  std::map<std::string_view, log_limit> log_limits_;  // by event
  mutable std::mutex counts_mutex_;
  consumer_counts counts_;
};

}  // namespace settle::consume

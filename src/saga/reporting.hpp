// What a host says about its work: counts, log lines, and the event that asks a person for help.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "saga/instance.hpp"
#include "saga/shared.hpp"
#include "settle/database.hpp"
#include "settle/metrics.hpp"
#include "settle/saga.hpp"

namespace settle::sagas {

class reporting {
 public:
  reporting(const environment& env, std::string host) : env_(env), host_(std::move(host)) {}

  // Of a saga that went on, after the commit.
  void went_on(const instance& of);
  void tick_ended();
  void tick_failed(const std::string& why) const;
  void order_refused(const instance& of, const std::string& why) const;
  void round_failed(const std::string& why) const;

  saga_counts counts() const;

  // Sagas of this host that no process knows, as a gauge.
  void stranded(const std::vector<stranded_sagas>& all);

 private:
  void ended(const instance& of);
  void tell_rows(const instance& of);
  void tell(const instance& of, const std::string& step, std::string_view outcome,
            std::optional<duration> took = std::nullopt);

  struct told {
    std::int64_t count = 0;
    time_counts times = {};
  };
  using step_outcome = std::tuple<std::string, std::string, std::string_view>;  // type, step, outcome

  const environment& env_;
  std::string host_;
  std::map<step_outcome, told> told_;                                     // since the last tick
  std::map<std::pair<std::string, std::string>, std::int64_t> stranded_;  // by type and version, as last told
  mutable std::mutex mutex_;
  saga_counts counts_;
};

// The event of a saga that is held, in the transaction that holds it.
void publish_alert(transaction& tx, const std::string& host, const instance& of);

}  // namespace settle::sagas

// Tries parked messages again, and writes down what became of them.
#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "consume/announcements.hpp"
#include "consume/charges.hpp"
#include "consume/handlers.hpp"
#include "consume/parking.hpp"
#include "consume/plan.hpp"
#include "consume/reporting.hpp"
#include "consume/retry_schedule.hpp"
#include "settle/consume.hpp"
#include "settle/database.hpp"

namespace settle::consume {

class retries {
 public:
  // Applies a batch, in one transaction if that goes well: which of its messages are done.
  using apply_batch = std::function<std::vector<work*>(batch messages, const std::stop_token& cancel)>;
  struct tools {
    database& db;
    const consumer_options& options;
    const handler_table& handlers;
    consume::parking& parking;
    retry_schedule& schedule;
    consume::announcements& announcements;
    consume::charges& charges;
    reporting& report;
    apply_batch apply;
  };
  explicit retries(tools with) : with_(std::move(with)) {}

  // If it is time, looks for some that are due, announces them and runs them; or leaves that to the next
  // batch. Whether some ran.
  bool run_due(bool has_other_work, const std::stop_token& cancel);
  // Those that were announced, by a batch or here. Whether there were any.
  bool run_announced(const std::stop_token& cancel);

 private:
  std::vector<work*> run(batch messages, timestamp enough, const std::stop_token& cancel);
  void write_down(batch messages, const std::stop_token& cancel);

  tools with_;
};

}  // namespace settle::consume

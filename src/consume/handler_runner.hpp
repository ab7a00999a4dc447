// Runs the handlers of a batch in its transaction: with the time that they may take, and in a way that one
// that fails can be taken back alone where that is possible.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <stop_token>

#include "consume/claimed_batch.hpp"
#include "consume/failures.hpp"
#include "consume/handler_pace.hpp"
#include "consume/handler_watch.hpp"
#include "consume/handlers.hpp"
#include "consume/reporting.hpp"
#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "settle/metrics.hpp"

namespace settle::consume {

class handler_runner {
 public:
  handler_runner(database& db, const consumer_options& options, const handler_table& handlers,
                 failures& what_failed, const reporting& report);

  // An attempt at a batch begins. Its token ends the transaction when a handler takes too long.
  using attempt = handler_watch::attempt;
  attempt begin(const std::stop_token& cancel) { return {watch_, cancel}; }

  // Nothing: all have run, and the batch may commit as it was planned. Else why it has to be rolled back.
  std::optional<failure> run(owned_transaction& tx, batch messages, claimed_batch& of, attempt& watched);

  // Slow handlers get small batches, so that a transaction lasts about batch_time.
  std::size_t batch_limit() const { return pace_.batch_limit(options_.batch_time, options_.batch_max); }

 private:
  class open_batch;
  std::optional<failed_attempt> call(const handler& what, std::span<const message* const> messages,
                                     transaction& tx, attempt& watched);

  database& db_;
  const consumer_options& options_;
  const handler_table& handlers_;
  failures& failures_;
  handler_watch watch_;
  handler_pace pace_;
  time_counts times_;         // of this attempt
  int mark_claims_ = 0;       // so many batches more keep their claims when a message fails, where they can
  bool read_beside_ = false;  // the last handler has read what its transaction does not show
};

}  // namespace settle::consume

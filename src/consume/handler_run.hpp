// Runs the handlers of a batch that shares a transaction, and decides what a failed one means for the others.
// Decisions only: what a handler does and how it is taken back is the host's business.
#pragma once

#include <cstddef>
#include <optional>

#include "consume/plan.hpp"

namespace settle::consume {

// What the batch runs on: one open transaction, with all claims of the batch made.
class handler_host {
 public:
  virtual ~handler_host() = default;

  // So many messages from this place on go to one handler together.
  virtual std::size_t together(std::size_t at) const = 0;

  // Runs the handler. What comes back is why it failed.
  virtual std::optional<failed_attempt> run(std::size_t at, std::size_t count) = 0;

  // The message has failed. True: it has failed alone, whoever shares its transaction, nothing of it is left,
  // and its charge is noted. So it is with one that had heard nothing of the database when it failed.
  virtual bool charge_at_once(std::size_t at, const failed_attempt& how) = 0;

  // Undoes what all handlers of the batch did; the claims stay. False: the transaction has to be rolled back.
  virtual bool go_back() = 0;
};

constexpr std::size_t left_out_max = 3;  // messages of a batch that fail, before it is rolled back after all

// Nothing: all handlers have run, and the batch may commit as planned. Else why it has to be rolled back.
std::optional<failure> run_handlers(batch messages, plan& of, handler_host& on, const judging& by);

}  // namespace settle::consume

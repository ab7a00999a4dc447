// Which messages of a batch run: those whose claims are new, unless something else speaks against it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "consume/caution.hpp"
#include "consume/claim_groups.hpp"
#include "consume/claimed_batch.hpp"
#include "consume/fence.hpp"
#include "consume/handlers.hpp"
#include "consume/held_keys.hpp"
#include "consume/inbox.hpp"
#include "consume/parking.hpp"
#include "consume/retention.hpp"
#include "consume/seams.hpp"
#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "settle/driver/broker.hpp"

namespace settle::consume {

class claims {
 public:
  // What it asks.
  struct sources {
    database& db;
    const consumer_options& options;
    const handler_table& handlers;
    const fence_keeper& fences;
    const caution& careful;
    consume::parking& parking;
    consume::retention& retention;
    consume::inbox& inbox;
    const attempt_moments& moments;
  };
  explicit claims(const sources& from) : from_(from) {}

  // Fences, claims, parked keys and horizons in one exchange, and a verdict on each message. Nothing: the
  // transaction has to be rolled back, and the next one will know what this one did not ask for. If another
  // process has keys of the batch, their messages are put off, and nothing else is to be done.
  std::optional<claimed_batch> claim(transaction& tx, batch messages, const subscription& deliveries);

  // Those of messages that are left out: as if they had not been in the batch.
  void give_back(transaction& tx, batch messages, claimed_batch& of) const;

  // Another process that has had a key for longer than any handler may take was stopped.
  void end_stopped_holders();
  // Keys of partitions that went may be anybody's.
  void forget_holders() { held_.forget(); }

 private:
  // What a batch's first exchange has shown, and who knows what the broker is done with.
  struct looked_up {
    const result& horizons;
    const std::vector<result>& parked_keys;
    const subscription& deliveries;
  };
  std::vector<std::size_t> to_claim(batch messages) const;
  std::vector<parameters> rows_of(batch messages, std::span<const std::string_view> keys,
                                  std::span<const claim_group> groups) const;
  std::vector<work*> put_off_held(batch messages, std::span<const result> parked_keys);
  void judge_fresh(transaction& tx, batch messages, const looked_up& known, claimed_batch& of) const;
  void take_replays(transaction& tx, batch messages, claimed_batch& of) const;

  sources from_;
  held_keys held_;
  int list_ = 0;  // so many batches more ask which of their claims are new, where that costs
};

}  // namespace settle::consume

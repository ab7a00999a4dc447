// Events that their window has passed and that are not out yet: the broker has refused them, they wait behind
// one of their topic and key that it has refused, nobody takes their topic, or their time has not come. They
// lie in a table of their own, so that nobody else waits for them; not even the same key on other topics,
// because no broker keeps an order across topics.
//
// Consumers judge copies by places (consume/retention.hpp), and a held event is delivered after events that
// come later in the outbox. So it gets a new place, behind all that its share has delivered, in a transaction
// before it is sent. It keeps the place under which it may have been stored: only what the broker has refused
// at the first attempt gets another one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "outbox/cursor.hpp"
#include "outbox/row_headers.hpp"
#include "outbox/window.hpp"
#include "settle/database.hpp"
#include "settle/driver/broker.hpp"
#include "settle/relay.hpp"
#include "sql/ownership.hpp"

namespace settle::outbox {

// What keeps its order, and waits together.
struct held_key {
  int share = 0;
  std::string topic;
  std::string key;
  friend auto operator<=>(const held_key&, const held_key&) = default;
};

struct held_event {
  std::int64_t seq = 0;
  std::int64_t tick = 0;
  held_key of;
  fate why{};           // rejected, unwanted, behind or delayed
  timestamp next_at{};  // not sent before; held_book::never: given up
  std::string error;
  std::string place;  // if it may have been sent from its window; else empty
};

// Which keys wait, and until when. Pure.
class held_book {
 public:
  bool blocks(const held_key& key) const { return keys_.contains(key); }
  bool blocks_any() const { return !keys_.empty(); }
  void hold_free(timestamp due) { free_due_ = std::min(free_due_.value_or(due), due); }
  void hold_key(const held_key& key, timestamp due) { keys_[key] = due; }
  void block(const held_key& key) { keys_.try_emplace(key); }  // due at once, unless it is known to wait
  void release_key(const held_key& key) { keys_.erase(key); }
  void set_free_due(std::optional<timestamp> due) { free_due_ = due; }
  void keep_only(std::uint32_t shares);  // bit per share

  std::vector<held_key> due_keys(timestamp now, std::uint32_t shares, std::size_t at_most) const;
  bool free_is_due(timestamp now) const { return free_due_ && *free_due_ <= now; }
  std::optional<timestamp> next_due() const;

  static constexpr timestamp never = timestamp::max();  // not before an operator decides so

 private:
  std::map<held_key, timestamp> keys_;
  std::optional<timestamp> free_due_;  // of the first event that waits for nothing but its time
};

class held_events {
 public:
  held_events(database& db, const sql::ownership& owned, const relay_options& options);

  const held_book& book() const { return book_; }
  void hold(const held_event& one);  // its row follows in the next note of progress
  void forget_all() { book_ = {}; }

  // In the transaction that moves the cursor past them.
  void insert(transaction& tx, std::span<const held_event> held) const;

  // In a write transaction: what waits in these shares. Operators change it, too. `gained`: some are new to
  // us.
  void reload(transaction& tx, const std::map<int, sql::holding>& shares, bool gained);

  struct batch {
    struct row {
      std::int64_t seq = 0;
      int share = 0;
      std::int64_t attempts = 0;
      bool sent_before = false;  // and nobody knows what became of it
    };
    std::vector<row> rows;
    std::vector<message> messages;
    std::vector<changed_headers> changed;
    std::vector<held_key> emptied;  // nothing else of them waits
  };

  // What is due in these shares, each with its place, which is durable when it returns. Under the fence, as
  // everything here.
  batch release(const std::map<int, cursor>& reached, const std::stop_token& cancel);

  // What became of it. Returns how many were confirmed.
  std::int64_t conclude(const batch& sent, std::span<const fate> fates,
                        std::span<const publish_result> results, const std::stop_token& cancel);

  // Reports that a message was rejected so many times by now. When to try again, or never.
  timestamp after_rejection(const message& m, std::int64_t attempts, const std::string& why) const;

  // Reports, not too often, that nobody takes a topic. When to try again.
  timestamp after_no_taker(const std::string& topic, const std::string& why);

 private:
  void give_places(transaction& tx, batch& all, const std::map<int, cursor>& reached,
                   std::span<const std::size_t> without) const;
  bool holds_its_key(timestamp next_at, const std::string& key) const;

  database& db_;
  const sql::ownership& owned_;
  relay_options options_;
  held_book book_;
  timestamp reloaded_at_{};
  std::map<std::string, timestamp> told_;  // topics that nobody takes, and when that was said
};

}  // namespace settle::outbox

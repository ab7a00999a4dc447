#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/sortable.hpp"
#include "base/zoo.hpp"
#include "outbox/page_reader.hpp"
#include "outbox/store.hpp"
#include "queries/outbox.hpp"
#include "settle/driver/database.hpp"
#include "settle/error.hpp"

namespace settle::outbox {
namespace {

namespace tick_columns = queries::outbox::write_tick_columns;

// PostgreSQL's own way to write an array of numbers.
template <class Numbers>
std::string array_text(const Numbers& numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers, ","));
}

class server_store final : public store {
 public:
  server_store(database& db, const relay_options& options) : db_(db), options_(options) {
    constexpr std::size_t careful = 16 * 1024;
    expect_rows_of(careful);
  }

  cursor take_tick(const std::stop_token& cancel) override {
    while (true) {
      auto tx = db_.begin(cancel);
      cluster_ = identity_of(tx);
      const auto ticked = tick_of(tx.commit_with(tick_statement(), "relay.tick"));
      if (!ticked.was_late) return ticked.at;  // else the other one's may not show what we came for
    }
  }

  cursor write_tick(transaction& tx) override {
    cluster_ = identity_of(tx);
    return tick_of(tx.execute(tick_statement())).at;
  }

  // One tick at a time, and it stays fixed while its window is paged. Every copy of an event then carries the
  // same tick, and first deliveries of a lane come in the order of their ticks and numbers, however late a
  // commit was: consumers judge copies by it. While a page is being published the next one is read.
  window read(const share_group& group, const cursor&) override {
    if (zoo::has(zoo::bug::moving_snapshot)) {
      const auto newest = take_tick({}).tick;
      auto moving = fetch({{group.from.tick, newest, group.from.seq}, group.mask}, {cluster_});
      return window_of(moving);
    }
    auto found = take_ahead(group);
    if (!found) found = fetch(group, {cluster_});
    auto made = window_of(*found);
    std::size_t bytes = 0;
    for (const auto& m : made.messages) bytes += m.payload.size();
    if (!made.rows.empty()) expect_rows_of(std::max(bytes / made.rows.size(), average_bytes_ / 2));
    if (made.end.upto > 0 && !ahead_)
      ahead_ = std::make_unique<page_reader>(
          share_group{made.end, group.mask},
          [this, terms = page_terms{cluster_}](const share_group& next) { return fetch(next, terms); });
    return made;
  }

  void note(transaction& tx, const progress& what) override {
    std::map<cursor, std::vector<int>> moved;
    std::vector<int> published;
    for (const auto& [share, reached] : what.reached) {
      const auto before = what.noted.find(share);
      if (before == what.noted.end() || before->second != reached) moved[reached].push_back(share);
      if ((what.published >> share & 1) != 0) published.push_back(share);
    }
    for (const auto& [reached, shares] : moved) note_one(tx, what.owned, reached, shares);
    if (!published.empty())
      tx.post(queries::outbox::forget_failures, {array_text(published), what.owned.member()});
  }

  std::map<int, cursor> cursors(transaction& tx, const std::map<int, sql::holding>& shares) override {
    const auto rows = tx.execute(queries::outbox::read_cursors);
    std::map<int, cursor> all;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      namespace columns = queries::outbox::read_cursors_columns;
      const auto share = static_cast<int>(rows[i][columns::share].integer());
      if (shares.contains(share))
        all[share] = {rows[i][columns::tick].integer(), rows[i][columns::upto].integer(),
                      rows[i][columns::position].integer()};
    }
    return all;
  }

  void expire(transaction& tx, std::int64_t rows_max) override {
    const auto now = db_.env().now();
    keys_to_expire_ += rows_max;
    if (keys_to_expire_ <= 0 || !is_due(next_expiry_, std::chrono::seconds(5))) return;
    constexpr std::int64_t ticks = 5000;  // more than are taken in that time
    tx.post(queries::outbox::expire, {now - options_.outbox_keep, ticks, now - options_.natural_key_keep,
                                      std::exchange(keys_to_expire_, 0)});
  }

  // Of programs that publish with SQL alone.
  bool commits_unnoticed() const override { return true; }

  void keep_house(const std::stop_token& cancel) override {
    if (!is_due(next_turn_, std::chrono::seconds(10))) return;
    auto tx = db_.begin(cancel);
    const auto turned =
        tx.execute(queries::outbox::turn_ring, {db_.env().now(), options_.outbox_keep.count()});
    tx.commit("relay.ring");
    const auto& emptied = turned[0][queries::outbox::turn_ring_columns::emptied];
    const auto& opened = turned[0][queries::outbox::turn_ring_columns::opened];
    if (emptied.is_null() && opened.is_null()) return;
    db_.env().log->write(log_level::info, "outbox_ring_turned",
                         {{"outbox", db_.name()},
                          {"emptied", emptied.is_null() ? "none" : std::to_string(emptied.integer())},
                          {"opened", opened.is_null() ? "none" : std::to_string(opened.integer())}});
  }

 private:
  struct new_tick {
    cursor at;
    bool was_late = false;  // another relay took one at the same time
  };

  statement tick_statement() const {
    const bool synced = !zoo::has(zoo::bug::publish_before_durable);
    return {queries::outbox::write_tick, {db_.env().now(), static_cast<std::int64_t>(synced)}};
  }

  new_tick tick_of(const result& ticked) const {
    check_cluster(ticked);
    return {{ticked[0][tick_columns::tick].integer(), 0, 0},
            ticked[0][tick_columns::taken_by_others].integer() != 0};
  }

  // These small tables grow with ticks, not with events: a look now and then is enough.
  bool is_due(timestamp& next, duration every) const {
    const auto now = db_.env().now();
    if (now < next && next - now <= every) return false;  // else the clock was set back
    next = now + every;
    return true;
  }

  static const query& window_query() {
    namespace columns = queries::outbox::read_window_columns;
    static_assert(columns::all == queries::outbox::read_window_by_xid_columns::all);
    static_assert(columns::all == queries::outbox::read_window_by_number_columns::all);
    if (zoo::has(zoo::bug::order_by_xid)) return queries::outbox::read_window_by_xid;
    if (zoo::has(zoo::bug::serial_cursor)) return queries::outbox::read_window_by_number;
    return queries::outbox::read_window;
  }

  // Ticks hold transaction ids, and those mean something in one history only: after a restore or a failover
  // the same ids are given out again.
  void check_cluster(const result& ticked) const {
    const auto& system_identifier = ticked[0][tick_columns::system_identifier];
    if (!cluster_ || system_identifier.is_null() || zoo::has(zoo::bug::cursor_kept_across_failover)) return;
    const cluster_identity known{system_identifier.integer(), ticked[0][tick_columns::timeline].integer(),
                                 false};
    if (*cluster_ == known) return;
    throw error(
        errc::cluster_changed,
        fmt::format("{} is cluster {} on timeline {}; its outbox belongs to cluster {} on timeline {}",
                    db_.name(), cluster_->system_identifier, cluster_->timeline, known.system_identifier,
                    known.timeline));
  }

  static void note_one(transaction& tx, const sql::ownership& owned, const cursor& reached,
                       const std::vector<int>& shares) {
    std::uint32_t mask = 0;
    std::vector<std::int64_t> epochs;
    for (const int share : shares) {
      mask |= 1U << share;
      epochs.push_back(owned.held().at(share).epoch);
    }
    const auto noted = tx.execute(queries::outbox::note_progress,
                                  {array_text(shares), array_text(epochs), owned.member(), mask, reached.tick,
                                   reached.upto, reached.seq, tx.env().now()});
    if (noted.affected() == 0)
      throw error(errc::ownership_lost,
                  fmt::format("shares {} of the outbox have another owner now", fmt::join(shares, ", ")));
  }

  struct page_terms {
    std::optional<cluster_identity> cluster;
  };

  // Also called from another thread.
  page fetch(const share_group& group, const page_terms& terms) const {
    const auto upto = window_of_next(group.from);
    const auto rows_max = rows_per_read_.load();
    auto tx = db_.read();
    if (identity_of(tx) != terms.cluster)
      throw error(errc::store_unavailable,
                  db_.name() + " has led to another server, or to a standby, since the last tick");
    tx.post(queries::outbox::plan_for_reading);
    page found{group, {upto, 0, 0}, {}};
    found.rows =
        tx.commit_with({window_query(), {group.from.tick, upto, group.from.seq, group.mask, rows_max}}, "");
    // The late ones and the new ones come one after the other, at most so many of each, and they do not
    // overlap.
    const auto count = static_cast<std::int64_t>(found.rows.size());
    if (count == 0 && count_ticks(group.from.tick, upto) < 2)
      throw error(errc::ownership_lost, "the outbox was rebased: the ticks that were read have gone");
    if (count >= rows_max)
      found.end = {
          group.from.tick, upto,
          found.rows.cell(static_cast<std::size_t>(rows_max) - 1, queries::outbox::read_window_columns::seq)
              .integer()};
    return found;
  }

  std::int64_t count_ticks(std::int64_t one, std::int64_t other) const {
    const auto counted = db_.read().execute(queries::outbox::count_ticks, {one, other});
    return counted[0][queries::outbox::count_ticks_columns::found].integer();
  }

  static std::int64_t window_of_next(const cursor& from) { return from.upto > 0 ? from.upto : from.tick + 1; }

  static window window_of(page& read) {
    window made{read.end, window_of_next(read.of.from), {}, {}, {}};
    made.rows.reserve(read.rows.size());
    made.messages.reserve(read.rows.size());
    for (std::size_t i = 0; i < read.rows.size(); ++i) {
      const auto row = window_row_of(read.rows[i]);
      if (read.end.upto > 0 && row.seq > read.end.seq) break;
      if (!made.rows.empty() && row.seq <= made.rows.back().seq)
        throw error(errc::statement_failed, "the rows of a window came out of order");
      made.rows.push_back(row);
      made.messages.push_back(message_of(read.rows, i, made.changed));
      made.messages.back().extensions["settleplace"] = sortable({made.upto, row.seq});
    }
    return made;
  }

  // Whoever has ended, failed or read something else than is wanted is not asked again.
  std::optional<page> take_ahead(const share_group& group) {
    if (!ahead_) return std::nullopt;
    auto reader = std::move(ahead_);
    auto found = reader->take(group);
    if (found && found->end.upto > 0) ahead_ = std::move(reader);
    return found;
  }

  void expect_rows_of(std::size_t bytes) {
    average_bytes_ = bytes;
    const auto fit = options_.batch_bytes_max / std::max<std::size_t>(bytes, 1);
    rows_per_read_ = static_cast<std::int64_t>(std::clamp<std::size_t>(fit, 1, options_.batch_max));
  }

  database& db_;
  relay_options options_;
  std::optional<cluster_identity> cluster_;  // that the last tick was taken on
  // Payloads are not measured beforehand: as many rows as the last ones let expect to fit.
  std::size_t average_bytes_ = 0;
  std::atomic<std::int64_t> rows_per_read_ = 0;
  timestamp next_expiry_{}, next_turn_{};
  std::int64_t keys_to_expire_ = 0;
  std::unique_ptr<page_reader> ahead_;  // goes first at the end: it uses the rest
};

}  // namespace

std::unique_ptr<store> postgres_store(database& db, const relay_options& options) {
  return std::make_unique<server_store>(db, options);
}

}  // namespace settle::outbox

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <optional>

#include "base/sortable.hpp"
#include "base/zoo.hpp"
#include "outbox/store.hpp"
#include "queries/outbox.hpp"
#include "settle/error.hpp"

namespace settle::outbox {
namespace {

// PostgreSQL's own way to write an array of numbers.
template <class Numbers>
std::string array_text(const Numbers& numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers, ","));
}

// The late ones and the new ones of a window come one after the other, each in order.
std::vector<std::size_t> by_number(const result& rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto number = [&](std::size_t i) { return rows[i][0].integer(); };
  if (!std::ranges::is_sorted(order, {}, number)) std::ranges::sort(order, {}, number);
  return order;
}

class server_store final : public store {
 public:
  server_store(database& db, const relay_options& options) : db_(db), options_(options) {}

  cursor take_tick(const std::stop_token& cancel) override {
    auto tx = db_.begin(cancel);
    const auto ticked = write_tick(tx);
    tx.commit("relay.tick");
    return ticked;
  }

  cursor write_tick(transaction& tx) override {
    if (!zoo::has(zoo::bug::publish_before_durable)) tx.post(queries::outbox::sync_commit);
    const auto ticked = tx.execute(queries::outbox::write_tick, {db_.env().now()});
    check_cluster(tx, ticked);
    return {ticked[0][0].integer(), 0, 0};
  }

  // One tick at a time, and it stays fixed while its window is paged. Every copy of an event then carries the
  // same tick, and first deliveries of a lane come in the order of their ticks and numbers, however late a
  // commit was: consumers judge copies by it. While a page is being published the next one is read.
  window read(const share_group& group, const cursor& head) override {
    if (zoo::has(zoo::bug::moving_snapshot))
      return fetch({{group.from.tick, head.tick, group.from.seq}, group.mask}, {rows_per_read(), cluster_});
    auto found = take_ahead(group);
    if (!found) found = fetch(group, {rows_per_read(), cluster_});
    std::size_t bytes = 0;
    for (const auto& m : found->messages) bytes += m.payload.size();
    if (!found->rows.empty()) average_bytes_ = std::max(bytes / found->rows.size(), average_bytes_ / 2);
    if (found->end.upto > 0) read_ahead({found->end, group.mask});
    return std::move(*found);
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
      const auto share = static_cast<int>(rows[i][0].integer());
      if (shares.contains(share))
        all[share] = {rows[i][1].integer(), rows[i][2].integer(), rows[i][3].integer()};
    }
    return all;
  }

  void expire(transaction& tx, std::int64_t rows_max) override {
    if (rows_max <= 0) return;
    const auto now = db_.env().now();
    constexpr std::int64_t slice = 100;
    tx.post(queries::outbox::delete_ticks, {now - options_.outbox_keep, slice});
    tx.post(queries::outbox::delete_progress, {now - options_.outbox_keep, slice});
    tx.post(queries::outbox::expire_natural_keys, {now - options_.natural_key_keep, rows_max});
  }

  void keep_house(const std::stop_token& cancel) override {
    auto tx = db_.begin(cancel);
    const auto turned =
        tx.execute(queries::outbox::turn_ring, {db_.env().now(), options_.outbox_keep.count()});
    tx.commit("relay.ring");
    if (turned[0][0].is_null() && turned[0][1].is_null()) return;
    db_.env().log->write(
        log_level::info, "outbox_ring_turned",
        {{"outbox", db_.name()},
         {"emptied", turned[0][0].is_null() ? "none" : std::to_string(turned[0][0].integer())},
         {"opened", turned[0][1].is_null() ? "none" : std::to_string(turned[0][1].integer())}});
  }

 private:
  static const query& window_query() {
    if (zoo::has(zoo::bug::order_by_xid)) return queries::outbox::read_window_by_xid;
    if (zoo::has(zoo::bug::serial_cursor)) return queries::outbox::read_window_by_number;
    return queries::outbox::read_window;
  }

  // Ticks hold transaction ids, and those mean something in one history only: after a restore or a failover
  // the same ids are given out again.
  void check_cluster(transaction& tx, const result& ticked) {
    cluster_ = tx.identity();
    if (!cluster_ || ticked[0][1].is_null() || zoo::has(zoo::bug::cursor_kept_across_failover)) return;
    const cluster_identity known{ticked[0][1].integer(), ticked[0][2].integer(), false};
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
    std::size_t rows_max = 0;
    std::optional<cluster_identity> cluster;
  };

  // Also called from another thread.
  window fetch(const share_group& group, const page_terms& terms) const {
    const auto rows_max = terms.rows_max;
    window found;
    found.upto = group.from.upto > 0 ? group.from.upto : group.from.tick + 1;
    auto tx = db_.read();
    if (tx.identity() != terms.cluster)
      throw error(errc::store_unavailable,
                  db_.name() + " has led to another server, or to a standby, since the last tick");
    tx.post(queries::outbox::plan_for_reading);
    auto rows = tx.execute(window_query(), {group.from.tick, found.upto, group.from.seq, group.mask,
                                            static_cast<std::int64_t>(rows_max)});
    const auto order = by_number(rows);
    const auto taken = std::min(order.size(), rows_max);
    found.rows.reserve(taken);
    found.messages.reserve(taken);
    for (std::size_t n = 0; n < taken; ++n) {
      found.rows.push_back(window_row_of(rows[order[n]]));
      found.messages.push_back(message_of(rows, order[n]));
      found.messages.back().extensions["settleplace"] = sortable({found.upto, found.rows.back().seq});
    }
    const bool full = taken == rows_max;
    found.end = full ? cursor{group.from.tick, found.upto, found.rows.back().seq} : cursor{found.upto, 0, 0};
    return found;
  }

  struct page_ahead {
    share_group of;
    std::future<window> page;
  };

  void read_ahead(const share_group& group) {
    const page_terms terms{rows_per_read(), cluster_};
    ahead_ = {group, std::async(std::launch::async, [this, group, terms] { return fetch(group, terms); })};
  }

  // The page that was read ahead, if it is the one that is wanted after all.
  std::optional<window> take_ahead(const share_group& group) {
    if (!ahead_) return std::nullopt;
    auto ahead = std::move(*ahead_);
    ahead_.reset();
    if (ahead.of == group) return ahead.page.get();
    ahead.page.wait();
    return std::nullopt;
  }

  // Payloads are not measured beforehand: as many rows as the last ones let expect to fit.
  std::size_t rows_per_read() const {
    const auto fit = options_.batch_bytes_max / std::max<std::size_t>(average_bytes_, 1);
    return std::clamp<std::size_t>(fit, 1, options_.batch_max);
  }

  database& db_;
  relay_options options_;
  std::optional<cluster_identity> cluster_;  // that the last tick was taken on
  std::size_t average_bytes_ = 16 * 1024;    // the first read is careful
  std::optional<page_ahead> ahead_;          // goes first at the end: it uses the rest
};

}  // namespace

std::unique_ptr<store> postgres_store(database& db, const relay_options& options) {
  return std::make_unique<server_store>(db, options);
}

}  // namespace settle::outbox

#include "base/zoo.hpp"
#include "outbox/store.hpp"
#include "queries/outbox.hpp"

namespace settle::outbox {
namespace {

class embedded_store final : public store {
 public:
  embedded_store(database& db, const relay_options& options) : db_(db), options_(options) {}

  // A commit of ours, synced, above every row that we are going to publish: whatever is visible below it
  // survives a power cut, even if its own writer did not wait for the disk.
  cursor take_tick(const std::stop_token& cancel) override {
    {
      auto look = db_.read();
      const auto head = look.execute(queries::outbox::read_head);
      const auto newest = head[0][queries::outbox::read_head_columns::newest].integer();
      const auto ticked = head[0][queries::outbox::read_head_columns::ticked].integer();
      if (zoo::has(zoo::bug::publish_before_durable)) return at_number(newest);
      if (ticked >= newest) return at_number(ticked);
    }
    auto tx = db_.begin(cancel);
    const auto ticked = write_tick(tx);
    tx.commit("relay.tick");
    return ticked;
  }

  cursor write_tick(transaction& tx) override {
    return at_number(
        tx.execute(queries::outbox::raise_tick)[0][queries::outbox::raise_tick_columns::seq_high].integer());
  }

  window read(const share_group& group, const cursor& head) override {
    auto tx = db_.read();
    const auto sizes =
        tx.execute(queries::outbox::measure_window,
                   {group.from.seq, head.seq, group.mask, static_cast<std::int64_t>(options_.batch_max)});
    std::vector<measured_row> measured;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      measured.push_back({sizes[i][queries::outbox::measure_window_columns::seq].integer(),
                          sizes[i][queries::outbox::measure_window_columns::bytes].integer()});
    window found;
    found.end = at_number(window_end(measured, options_.batch_max, options_.batch_bytes_max, head.seq));
    if (measured.empty()) return found;
    auto rows = tx.execute(queries::outbox::read_window, {group.from.seq, found.end.seq, group.mask});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      found.rows.push_back(window_row_of(rows[i]));
      found.messages.push_back(message_of(rows, i, found.changed));
    }
    return found;
  }

  void note(transaction& tx, const progress& what) override {
    std::map<int, std::int64_t> positions;
    std::map<std::int64_t, std::uint32_t> masks;  // one row per position
    for (const auto& [share, reached] : what.reached) {
      positions[share] = reached.seq;
      if ((what.published >> share & 1) != 0) masks[reached.seq] |= 1U << share;
    }
    what.owned.advance(tx, positions);
    for (const auto& [position, mask] : masks)
      tx.execute(queries::outbox::note_progress, {mask, position, db_.env().now()});
  }

  std::map<int, cursor> cursors(transaction&, const std::map<int, sql::holding>& shares) override {
    std::map<int, cursor> all;
    for (const auto& [share, held] : shares) all[share] = at_number(held.position);
    return all;
  }

  void expire(transaction& tx, std::int64_t rows_max) override {
    if (rows_max <= 0) return;
    const auto now = db_.env().now();
    const auto remove = [&](std::int64_t looked_at) {
      const auto keep =
          tx.execute(queries::outbox::first_event_to_keep, {now - options_.outbox_keep, looked_at});
      return tx
          .execute(queries::outbox::delete_events_below,
                   {keep[0][queries::outbox::first_event_to_keep_columns::first_kept].integer()})
          .affected();
    };
    if (remove(1) > 0) remove(rows_max);  // as a rule the oldest is young, and nothing else is looked at
    constexpr std::int64_t batches = 16;  // a batch leaves about one row of progress
    tx.execute(queries::outbox::delete_progress, {now - options_.outbox_keep, batches});
    tx.execute(queries::outbox::expire_natural_keys, {now - options_.natural_key_keep, rows_max});
  }

 private:
  database& db_;
  relay_options options_;
};

}  // namespace

std::unique_ptr<store> sqlite_store(database& db, const relay_options& options) {
  return std::make_unique<embedded_store>(db, options);
}

}  // namespace settle::outbox

#include "sql/ownership.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "queries/sql.hpp"
#include "settle/error.hpp"

namespace settle::sql {

ownership_plan plan_ownership(std::span<const share_row> shares, std::int64_t members_alive,
                              const std::string& me, const running_leases& running) {
  const auto members = std::max<std::int64_t>(members_alive, 1);
  const auto fair = (static_cast<std::int64_t>(shares.size()) + members - 1) / members;
  std::vector<int> mine;
  std::vector<int> free;
  for (const auto& row : shares) {
    if (row.owner == me)
      mine.push_back(row.share);
    else if (row.owner.empty() || !running.include(row.lease_until))
      free.push_back(row.share);
  }
  ownership_plan plan;
  while (static_cast<std::int64_t>(mine.size()) > fair) {
    plan.release.push_back(mine.back());
    mine.pop_back();
  }
  for (const int share : free) {
    if (static_cast<std::int64_t>(mine.size() + plan.claim.size()) >= fair) break;
    plan.claim.push_back(share);
  }
  return plan;
}

ownership::ownership(database& db, settings with)
    : db_(db),
      settings_(std::move(with)),
      register_(register_of(db)),
      member_(db.env().ids->next_as<member_id>().text()) {}

bool ownership::due() {
  const auto now = db_.env().now();
  const bool is_due =
      now >= next_refresh_ || next_refresh_ - now > settings_.lease_ttl / 3 || somebody_left(now);
  if (is_due) show_myself();
  return is_due;
}

bool ownership::somebody_left(timestamp now) {
  if (others_.empty() || (now < next_look_ && next_look_ - now <= look_every)) return false;
  next_look_ = now + look_every;
  return !register_->gone_of(others_).empty();
}

// Whoever could not be shown before its name was used keeps one that nobody takes for gone. One that is not
// seen any more, because its session has ended, is shown again.
void ownership::show_myself() {
  if (register_ == nullptr || (presence_ && presence_->lasts())) return;
  if (!introduced_) {
    const auto marked = member_ + std::string(register_->mark());
    presence_ = register_->show(marked);
    if (presence_) member_ = marked;
  } else if (member_.ends_with(register_->mark())) {
    presence_.reset();
    presence_ = register_->show(member_);
  }
}

// Their leases end now; the shares keep their names, so that who gets one knows that it was not given back.
void ownership::forget_gone_members(transaction& tx) {
  if (register_ == nullptr) return;
  const auto found = tx.execute(queries::sql::list_other_members, {settings_.scope, member_});
  others_.clear();
  for (std::size_t i = 0; i < found.size(); ++i)
    others_.push_back(found[i][queries::sql::list_other_members_columns::member].text());
  for (const auto& gone : register_->gone_of(others_)) {
    tx.execute(queries::sql::end_leases_of, {settings_.scope, gone});
    tx.execute(queries::sql::remove_member, {settings_.scope, gone});
    std::erase(others_, gone);
  }
}

void ownership::ensure_shares(transaction& tx) const {
  std::vector<parameters> rows;
  for (int share = 0; share < settings_.shares; ++share) rows.push_back({settings_.scope, share});
  tx.execute_many(queries::sql::add_share, rows);
}

ownership::scope_state ownership::read(transaction& tx, const running_leases& running) const {
  namespace columns = queries::sql::read_shares_columns;
  const auto found = tx.execute(queries::sql::read_shares, {settings_.scope, running.now, running.latest});
  std::vector<share_row> rows;
  rows.reserve(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto row = found[i];
    const auto& owner = row[columns::owner];
    rows.push_back({static_cast<int>(row[columns::share].integer()), row[columns::position].integer(),
                    owner.is_null() ? std::string() : owner.text(), row[columns::epoch].integer(),
                    row[columns::lease_until].time()});
  }
  return {std::move(rows), found.empty() ? 0 : found[0][columns::members_alive].integer()};
}

void ownership::release(transaction& tx, int share, std::int64_t epoch, const std::set<int>& in_doubt) const {
  const auto nobody = in_doubt.contains(share) ? value("in doubt") : value();
  tx.execute(queries::sql::release_share, {settings_.scope, share, member_, epoch, nobody});
}

ownership_change ownership::refresh(transaction& tx, const std::set<int>& in_doubt) {
  const auto now = db_.env().now();
  const auto until = now + settings_.lease_ttl;
  const auto running = running_at(now, settings_.lease_ttl);
  const auto& scope = settings_.scope;
  introduced_ = true;
  tx.execute(queries::sql::forget_dead_members, {scope, now, running.latest});
  tx.execute(queries::sql::renew_member, {scope, member_, until});
  forget_gone_members(tx);
  auto state = read(tx, running);
  if (static_cast<int>(state.shares.size()) < settings_.shares) {
    ensure_shares(tx);
    state = read(tx, running);
  }
  const auto& rows = state.shares;
  const auto plan = plan_ownership(rows, state.members_alive, member_, running);

  next_held_.clear();
  for (const auto& row : rows) {
    if (row.owner != member_) continue;
    const bool kept = std::ranges::find(plan.release, row.share) == plan.release.end();
    if (kept)
      next_held_[row.share] = {row.epoch, row.position};
    else
      release(tx, row.share, row.epoch, in_doubt);
  }
  if (!next_held_.empty()) tx.execute(queries::sql::renew_shares, {scope, member_, until});
  for (const int share : plan.claim) {
    const auto claimed =
        tx.execute(queries::sql::claim_share, {scope, share, member_, until, now, running.latest});
    namespace columns = queries::sql::claim_share_columns;
    if (!claimed.empty())
      next_held_[share] = {claimed[0][columns::epoch].integer(), claimed[0][columns::position].integer()};
  }

  ownership_change change;
  for (const auto& [share, was] : held_) {
    const auto still = next_held_.find(share);
    if (still == next_held_.end() || still->second.epoch != was.epoch) change.lost.push_back(share);
  }
  for (const auto& [share, now_held] : next_held_) {
    const auto before = held_.find(share);
    if (before != held_.end() && before->second.epoch == now_held.epoch) continue;
    change.gained.push_back(share);
    const auto row = std::ranges::find(rows, share, &share_row::share);
    if (row != rows.end() && !row->owner.empty()) change.taken_over.push_back(share);
  }
  return change;
}

void ownership::applied() {
  held_ = next_held_;
  next_refresh_ = db_.env().now() + settings_.lease_ttl / 3;
  next_look_ = db_.env().now() + look_every;
}

void ownership::advance(transaction& tx, const std::map<int, std::int64_t>& positions) const {
  std::vector<parameters> rows;
  rows.reserve(positions.size());
  for (const auto& [share, position] : positions)
    rows.push_back({settings_.scope, share, member_, held_.at(share).epoch, position});
  const auto changed = tx.execute_many(queries::sql::advance_share, rows);
  auto of = positions.begin();
  for (const auto rows_changed : changed) {
    if (rows_changed == 0) throw lost(of->first);
    ++of;
  }
}

error ownership::lost(int share) const {
  return {errc::ownership_lost, fmt::format("share {} of {} has another owner now", share, settings_.scope)};
}

void ownership::confirm(transaction& tx) const {
  const auto rows = tx.execute(queries::sql::confirm_shares, {settings_.scope, member_});
  std::map<std::int64_t, std::int64_t> epochs;
  namespace columns = queries::sql::confirm_shares_columns;
  for (std::size_t i = 0; i < rows.size(); ++i)
    epochs[rows[i][columns::share].integer()] = rows[i][columns::epoch].integer();
  for (const auto& [share, held] : held_) {
    const auto found = epochs.find(share);
    if (found == epochs.end() || found->second != held.epoch) throw lost(share);
  }
}

void ownership::note_failure(transaction& tx, int share, const std::string& why) const {
  tx.execute(queries::sql::note_share_failure, {settings_.scope, share, member_, held_.at(share).epoch, why});
}

std::vector<int> ownership::drop_all() {
  std::vector<int> dropped;
  for (const auto& [share, unused] : held_) dropped.push_back(share);
  held_.clear();
  presence_.reset();  // who waits for our shares need not wait until we come again
  next_refresh_ = {};
  return dropped;
}

void ownership::release_all(transaction& tx, const std::set<int>& in_doubt) const {
  for (const auto& [share, held] : held_) release(tx, share, held.epoch, in_doubt);
  tx.execute(queries::sql::remove_member, {settings_.scope, member_});
}

}  // namespace settle::sql

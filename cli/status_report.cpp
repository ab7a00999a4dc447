#include "cli/status_report.hpp"

#include <algorithm>
#include <map>

#include "queries/broker.hpp"
#include "queries/cli.hpp"
#include "queries/outbox.hpp"
#include "settle/driver/database.hpp"

namespace settle::cli {
namespace {

struct waiting_events {
  std::int64_t count = 0;
  timestamp oldest{};
};

// By share.
std::map<std::int64_t, waiting_events> read_waiting(transaction& tx, std::int64_t upto) {
  tx.execute(queries::outbox::plan_for_counting);
  const auto rows = tx.execute(queries::outbox::read_waiting, {upto});
  std::map<std::int64_t, waiting_events> found;
  for (std::size_t i = 0; i < rows.size(); ++i)
    found[rows[i][0].integer()] = {rows[i][1].integer(), rows[i][2].time()};
  return found;
}

struct numbers {
  std::int64_t highest = 0;
  std::optional<std::int64_t> skipped;
};

numbers numbers_of(transaction& tx) {
  const auto row = tx.execute(queries::cli::read_outbox_total);
  numbers used{row[0][0].integer(), std::nullopt};
  if (!row[0][1].is_null()) used.skipped = row[0][1].integer();
  return used;
}

struct held_counts {
  std::int64_t waiting = 0, delayed = 0, failed = 0;
  std::optional<timestamp> oldest;
};

held_counts read_held(transaction& tx, std::int64_t upto) {
  const auto row = tx.execute(queries::outbox::count_held, {upto, tx.env().now()});
  held_counts found{row[0][0].integer(), row[0][1].integer(), row[0][2].integer(), std::nullopt};
  if (!row[0][3].is_null()) found.oldest = row[0][3].time();
  return found;
}

// As the relay sees it: see errc::cluster_changed.
bool is_another_cluster(transaction& tx) {
  const auto here = identity_of(tx);
  const auto known = tx.execute(queries::cli::read_cluster);
  if (!here || known[0][0].is_null()) return false;
  return here->system_identifier != known[0][0].integer() || here->timeline != known[0][1].integer();
}

// A share whose events have all gone is not blocked, whatever it failed at before.
std::vector<blocked_share> blocked_of(transaction& tx,
                                      const std::map<std::int64_t, waiting_events>& waiting) {
  const auto rows = tx.execute(queries::cli::read_blocked_shares);
  std::vector<blocked_share> blocked;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto of = waiting.find(rows[i][0].integer());
    if (of == waiting.end()) continue;
    blocked.push_back({of->first, of->second.count, rows[i][1].integer(), rows[i][2].text()});
  }
  return blocked;
}

}  // namespace

namespace {

std::vector<consumer_status> read_consumers(transaction& tx) {
  std::map<std::string, consumer_status> all;
  const auto records = tx.execute(queries::cli::count_dedup_records);
  for (std::size_t i = 0; i < records.size(); ++i)
    all[records[i][0].text()].records = records[i][1].integer();
  const auto waiting = tx.execute(queries::cli::count_waiting);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    auto& one = all[waiting[i][0].text()];
    one.parked = waiting[i][1].integer();
    one.dead_letters = waiting[i][2].integer();
  }
  std::vector<consumer_status> list;
  for (auto& [name, one] : all) {
    one.consumer = name;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

service_status read_service_status(database& service) {
  auto tx = service.read();
  const auto now = service.env().now();
  service_status status;
  status.file = service.name();
  status.speaks = service.speaks();
  status.cluster_changed = is_another_cluster(tx);
  const auto used = numbers_of(tx);
  const auto waiting = read_waiting(tx, used.highest);
  for (const auto& [share, events] : waiting) {
    status.pending += events.count;
    status.oldest_pending_age =
        std::max(status.oldest_pending_age.value_or(duration::zero()), now - events.oldest);
  }
  const auto held = read_held(tx, used.highest);
  status.pending += held.waiting;
  status.delayed = held.delayed;
  status.failed = held.failed;
  if (held.oldest)
    status.oldest_pending_age =
        std::max(status.oldest_pending_age.value_or(duration::zero()), now - *held.oldest);
  if (used.skipped)
    status.published = used.highest - *used.skipped - status.pending - status.delayed - status.failed;
  status.blocked = blocked_of(tx, waiting);
  const auto relays = tx.execute(queries::cli::count_relays, {now});
  status.relays_alive = relays[0][0].integer();
  status.shares_owned = relays[0][1].integer();
  status.consumers = read_consumers(tx);
  return status;
}

broker_status read_broker_status(database& broker) {
  auto tx = broker.read();
  broker_status status;
  status.file = broker.name();
  status.bytes = tx.execute(queries::broker::used_bytes)[0][0].integer();
  const auto topics = tx.execute(queries::cli::read_topics);
  for (std::size_t i = 0; i < topics.size(); ++i)
    status.topics.push_back({topics[i][1].text(), topics[i][3].integer(), topics[i][2].integer()});
  constexpr std::int64_t all = -1;
  const auto groups = tx.execute(queries::broker::read_groups, {broker.env().now(), all});
  for (std::size_t i = 0; i < groups.size(); ++i)
    status.groups.push_back(
        {groups[i][0].text(), groups[i][1].text(), groups[i][3].integer(), groups[i][2].integer()});
  return status;
}

std::int64_t read_outbox_total(database& service) {
  auto tx = service.read();
  return numbers_of(tx).highest;
}

std::int64_t count_waiting(database& service, std::int64_t upto) {
  auto tx = service.read();
  std::int64_t count = 0;
  for (const auto& [share, events] : read_waiting(tx, upto)) count += events.count;
  return count + read_held(tx, upto).waiting;
}

std::int64_t count_failed(database& service, std::int64_t upto) {
  auto tx = service.read();
  return read_held(tx, upto).failed;
}

std::vector<blocked_share> read_blocked(database& service) {
  auto tx = service.read();
  return blocked_of(tx, read_waiting(tx, numbers_of(tx).highest));
}

}  // namespace settle::cli

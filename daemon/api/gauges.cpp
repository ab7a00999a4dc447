#include "daemon/api/gauges.hpp"

#include <map>
#include <ranges>
#include <string>

#include "base/series.hpp"
#include "inspect/outbox.hpp"
#include "inspect/sagas.hpp"

namespace settle::daemon {

namespace {

// One host and type is one series, whatever its versions; of too many the first ones.
void read_saga_gauges(transaction& tx, gauge_values& into) {
  const auto open = inspect::count_open_sagas(tx);
  into["settle_sagas_held"] = static_cast<double>(inspect::sagas_in(open, "HELD"));
  std::map<std::string, double> series;
  double stranded = 0;
  for (const auto& one : open) {
    series[series_of("settle_sagas", {{"host", one.host}, {"type", one.type}, {"status", one.status}})] +=
        static_cast<double>(one.sagas);
    if (one.processes == 0 && one.status != "HELD") stranded += static_cast<double>(one.sagas);
  }
  into["settle_sagas_stranded"] = stranded;
  for (const auto& [name, value] : series | std::views::take(series_max)) into[name] = value;
}

}  // namespace

void read_service_gauges(database& service, gauge_values& into) {
  auto tx = service.read();
  const auto backlog = inspect::read_backlog(tx);
  const auto oldest_age = backlog.oldest_age(service.env().now()).value_or(duration::zero());
  into["settle_outbox_pending_events"] = static_cast<double>(backlog.pending);
  into["settle_outbox_delayed_events"] = static_cast<double>(backlog.delayed);
  into["settle_outbox_failed_events"] = static_cast<double>(backlog.failed);
  into["settle_outbox_oldest_pending_age_seconds"] = std::chrono::duration<double>(oldest_age).count();
  into["settle_relays_alive"] = static_cast<double>(inspect::read_relays(tx).alive);
  read_saga_gauges(tx, into);
}

void read_broker_gauges(broker_inspection& broker, gauge_values& into) {
  for (const auto& one : broker.topics(series_max))
    if (one.messages)
      into[series_of("settle_broker_messages", {{"topic", one.name}})] = static_cast<double>(*one.messages);
  std::size_t partitions = 0;
  for (const auto& one : broker.groups({.groups_max = series_max})) {
    if (one.lag)
      into[series_of("settle_broker_group_lag_messages", {{"group", one.group}, {"topic", one.topic}})] =
          static_cast<double>(*one.lag);
    for (const auto& [partition, lag] : one.partitions)
      if (++partitions <= series_max)
        into[series_of(
            "settle_broker_partition_lag_messages",
            {{"group", one.group}, {"topic", one.topic}, {"partition", std::to_string(partition)}})] =
            static_cast<double>(lag);
  }
}

}  // namespace settle::daemon

#include "daemon/gauges.hpp"

#include <algorithm>

#include "base/series.hpp"
#include "queries/broker.hpp"
#include "queries/daemon.hpp"

namespace settle::daemon {

void read_service_gauges(database& service, gauge_values& into) {
  auto tx = service.read();
  const auto now = service.env().now();
  tx.execute(queries::daemon::plan_for_reading);
  const auto pending = tx.execute(queries::daemon::read_pending);
  const auto count = pending[0][0].integer();
  // A clock that was set back must not show an age below zero.
  const auto age = count == 0 ? duration::zero() : std::max(now - pending[0][1].time(), duration::zero());
  into["settle_outbox_pending_events"] = static_cast<double>(count);
  into["settle_outbox_oldest_pending_age_seconds"] = std::chrono::duration<double>(age).count();
  into["settle_relays_alive"] =
      static_cast<double>(tx.execute(queries::daemon::count_relays, {now})[0][0].integer());
}

void read_broker_gauges(database& broker, gauge_values& into) {
  auto tx = broker.read();
  const auto topics = tx.execute(queries::daemon::count_messages, {series_max});
  for (std::size_t i = 0; i < topics.size(); ++i)
    into[series_of("settle_broker_messages", {{"topic", topics[i][0].text()}})] =
        static_cast<double>(topics[i][1].integer());
  const auto groups = tx.execute(queries::broker::read_groups, {broker.env().now(), series_max});
  for (std::size_t i = 0; i < groups.size(); ++i)
    into[series_of("settle_broker_group_lag_messages",
                   {{"group", groups[i][0].text()}, {"topic", groups[i][1].text()}})] =
        static_cast<double>(groups[i][3].integer());
}

}  // namespace settle::daemon

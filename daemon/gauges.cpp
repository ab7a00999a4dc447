#include "daemon/gauges.hpp"

#include <algorithm>
#include <limits>

#include "base/series.hpp"
#include "queries/broker.hpp"
#include "queries/daemon.hpp"
#include "queries/outbox.hpp"

namespace settle::daemon {

void read_service_gauges(database& service, gauge_values& into) {
  auto tx = service.read();
  const auto now = service.env().now();
  tx.execute(queries::daemon::plan_for_reading);
  const auto pending = tx.execute(queries::daemon::read_pending);
  const auto held = tx.execute(queries::outbox::count_held, {std::numeric_limits<std::int64_t>::max(), now});
  const auto count = pending[0][0].integer() + held[0][0].integer();
  auto oldest = now;
  for (const auto& since : {pending[0][1], held[0][3]})
    if (!since.is_null()) oldest = std::min(oldest, since.time());
  const auto age = now - oldest;
  into["settle_outbox_pending_events"] = static_cast<double>(count);
  into["settle_outbox_delayed_events"] = static_cast<double>(held[0][1].integer());
  into["settle_outbox_failed_events"] = static_cast<double>(held[0][2].integer());
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

#include "daemon/api/gauges.hpp"

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
  constexpr auto everything = std::numeric_limits<std::int64_t>::max();
  tx.execute(queries::outbox::plan_for_counting);
  const auto waiting = tx.execute(queries::outbox::read_waiting, {everything});
  const auto held = tx.execute(queries::outbox::count_held, {everything, now});
  auto count = held[0][0].integer();
  auto oldest = held[0][3].is_null() ? now : std::min(now, held[0][3].time());
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    count += waiting[i][1].integer();
    oldest = std::min(oldest, waiting[i][2].time());
  }
  into["settle_outbox_pending_events"] = static_cast<double>(count);
  into["settle_outbox_delayed_events"] = static_cast<double>(held[0][1].integer());
  into["settle_outbox_failed_events"] = static_cast<double>(held[0][2].integer());
  into["settle_outbox_oldest_pending_age_seconds"] = std::chrono::duration<double>(now - oldest).count();
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

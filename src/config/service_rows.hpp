// The settings of a service. Each row serves twice: inside [service.NAME], and at the top of the file, where
// it is that of the short form's service and the default of all others.
#pragma once

#include <array>

#include "config/option.hpp"

namespace settle::config {

template <class Settings, auto... At>
constexpr field_of<Settings> holds_failed_keys{
    [](const Settings& from) -> setting_value {
      return reach<At..., &service_settings::relay, &relay_options::on_exhausted>(from) ==
             exhausted::hold_key;
    },
    [](Settings& to, const setting_value& value) {
      reach<At..., &service_settings::relay, &relay_options::on_exhausted>(to) =
          std::get<bool>(value) ? exhausted::hold_key : exhausted::continue_key;
    }};

// `At` leads from Settings to the service in them; nowhere if they are a service's.
template <class Settings, auto... At>
constexpr auto store_rows() {
  using std::chrono::milliseconds;
  using std::chrono::minutes;
  using row = option_of<Settings>;
  return std::array{
      row{"database", kind::store, field<At..., &service_settings::database>(), bytes_of_store, "",
          "The service's database: a file, or a PostgreSQL as postgresql://… or in libpq's keywords, 'host=… "
          "dbname=… user=…'. Empty: settle.db in the data folder. A text that begins with a lower-case word "
          "and = is taken for keywords; write ./a=b.db for such a file. A password in it is never shown, but "
          "PGPASSWORD or PGPASSFILE in the environment are better places. A server that is away is no reason "
          "not to start: the daemon is not ready until it is back."},
      row{"migrate",
          kind::flag,
          field<At..., &service_settings::migrate>(),
          {},
          "",
          "Whether to create and update Settle's tables in the service's database at the start. If false, a "
          "database that lacks some is refused; `settle migrate --print` prints what is to be run there."},
      row{"busy_timeout", kind::time, field<At..., &service_settings::busy_timeout>(),
          between(milliseconds(1), minutes(10)), "",
          "How long a write waits for other writers of the same file, or for a lock of the server. Then it "
          "fails "
          "and is tried again."},
  };
}

template <class Settings, auto... At>
constexpr auto relay_rows() {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  using std::chrono::minutes;
  using row = option_of<Settings>;
  return std::array{
      row{"relay.batch_max",
          kind::count,
          field<At..., &service_settings::relay, &relay_options::batch_max>(),
          {1, 10'000},
          "events",
          "Events per batch: one read, one publish, one commit. More is faster and holds more memory."},
      row{"relay.batch_bytes_max",
          kind::bytes,
          field<At..., &service_settings::relay, &relay_options::batch_bytes_max>(),
          {1, 1024 * mib},
          "",
          "Payload bytes per batch. A single larger event still goes, alone."},
      row{"relay.lease_ttl", kind::time, field<At..., &service_settings::relay, &relay_options::lease_ttl>(),
          between(milliseconds(50), hours(1)), "",
          "How long a silent relay keeps its part of the outbox. Shorter is a faster take-over and more "
          "renewals; it is never a question of correctness."},
      row{"relay.idle_poll", kind::time, field<At..., &service_settings::relay, &relay_options::idle_poll>(),
          between(milliseconds(1), minutes(1)), "",
          "How often to look for events without a wake-up. Commits wake the relay; this is the safety net."},
      row{"relay.source", kind::text, field<At..., &service_settings::relay, &relay_options::source>(),
          bytes_of_name, "",
          "The CloudEvents source of relayed messages. Empty: \"settle:\" and the database's own id. "
          "Consumers deduplicate by source and id, so do not change it while events are under way."},
      row{"relay.outbox_keep", kind::time,
          field<At..., &service_settings::relay, &relay_options::outbox_keep>(),
          between(milliseconds(0), hours(24 * 365)), "",
          "How long a published event stays readable in the outbox, counted from its commit."},
      row{"relay.natural_key_keep", kind::time,
          field<At..., &service_settings::relay, &relay_options::natural_key_keep>(),
          between(milliseconds(0), hours(24 * 365)), "",
          "How long publish_once() remembers that an event was published. Not shorter than "
          "relay.outbox_keep."},
      row{"relay.attempts_max",
          kind::count,
          field<At..., &service_settings::relay, &relay_options::attempts_max>(),
          {1, 1000},
          "attempts",
          "How often an event is offered to a broker that rejects it; then it is FAILED, and `settle outbox "
          "failed` lists it. Outages of the broker do not count."},
      row{"relay.hold_failed_keys",
          kind::flag,
          holds_failed_keys<Settings, At...>,
          {},
          "",
          "Whether later events of a key wait behind one that is FAILED until it is requeued. Otherwise "
          "they go on without it."},
  };
}

template <class Settings, auto... At>
constexpr auto key_and_sweep_rows() {
  using std::chrono::hours;
  using std::chrono::milliseconds;
  using row = option_of<Settings>;
  return std::array{
      row{"keys.redis", kind::redis, field<At..., &service_settings::keys_redis>(), bytes_of_store, "",
          "A Redis for the idempotency keys of /v1/keys. Empty: the service's database, which forgets "
          "nothing. "
          "Redis may: after a crash of the server its last second (appendfsync everysec), and then a request "
          "may run twice. One that evicts keys, keeps no append-only file or never syncs it (appendfsync no) "
          "is "
          "refused. The password is never shown."},
      row{"sweep.interval", kind::time, field<At..., &service_settings::sweep, &sweep_settings::interval>(),
          between(milliseconds(100), hours(24)), "",
          "How often to look for what can be removed from the service's database: records of idempotent "
          "requests whose time is over, and webhooks that are. Both go in slices with pauses between them."},
      row{"sweep.webhook_keep", kind::time,
          field<At..., &service_settings::sweep, &sweep_settings::webhook_keep>(),
          between(hours(1), hours(24 * 3650)), "",
          "How long webhooks that are over stay in the journal, and with them the knowledge that a copy is "
          "one. Much longer than a provider goes on trying, which may be days: what it first delivers after "
          "this time is taken for a copy. Workers of your own in the same database have a keep too; the "
          "shortest one decides."},
  };
}

template <class Settings, auto... At>
constexpr auto service_rows() {
  return joined(store_rows<Settings, At...>(), relay_rows<Settings, At...>(),
                key_and_sweep_rows<Settings, At...>());
}

}  // namespace settle::config

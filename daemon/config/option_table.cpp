#include <algorithm>
#include <array>
#include <cctype>

#include "daemon/config/option.hpp"

namespace settle::daemon {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;

constexpr bounds between(duration min, duration max) { return {min.count(), max.count()}; }
constexpr bounds bytes_of_path{1, 4000};
constexpr bounds bytes_of_name{0, 255};
constexpr bounds bytes_of_store{0, 4000};

using config = configuration;

constexpr field_of<config> holds_failed_keys{
    [](const config& from) -> setting_value { return from.relay.on_exhausted == exhausted::hold_key; },
    [](config& to, const setting_value& value) {
      to.relay.on_exhausted = std::get<bool>(value) ? exhausted::hold_key : exhausted::continue_key;
    }};

constexpr std::array table{
    option{"data", kind::text, field<&config::data>(), bytes_of_path, "",
           "Folder of settle.db, broker.db and settled.lock. Created, readable by its owner only, if it is "
           "not there; its parent must be. Not on a network filesystem."},
    option{
        "database", kind::store, field<&config::database>(), bytes_of_store, "",
        "The service's database: a file, or a PostgreSQL as postgresql://… or in libpq's keywords, 'host=… "
        "dbname=… user=…'. Empty: settle.db in the data folder. A text that begins with a lower-case word "
        "and = is taken for keywords; write ./a=b.db for such a file. A password in it is never shown, but "
        "PGPASSWORD or PGPASSFILE in the environment are better places. A server that is away is no reason "
        "not to start: the daemon is not ready until it is back."},
    option{"migrate",
           kind::flag,
           field<&config::migrate>(),
           {},
           "",
           "Whether to create and update Settle's tables in the service's database at the start. If false, a "
           "database that lacks some is refused; `settle migrate --print` prints what is to be run there."},
    option{
        "listen",
        kind::address,
        field<&config::listen>(),
        {},
        "",
        "Where HTTP is served. An IPv4 address or an IPv6 address in brackets, and a port; port 0 takes a "
        "free one and the log says which. Nothing but webhooks is authenticated yet, so keep it on loopback; "
        "let a proxy with TLS pass /webhooks/ on to it."},
    option{"log_level",
           kind::level,
           field<&config::log>(),
           {},
           "",
           "The least important log line that is written. Lines go to standard error."},
    option{
        "drain_timeout", kind::time, field<&config::drain_timeout>(), between(milliseconds(0), hours(1)), "",
        "How long a stop waits for the work under way: the relay's batch, webhooks, a sweep, requests. After "
        "it the work is cancelled, which loses nothing: it is done again by whoever comes next."},
    option{"busy_timeout", kind::time, field<&config::busy_timeout>(), between(milliseconds(1), minutes(10)),
           "",
           "How long a write waits for other writers of the same file, or for a lock of the server. Then it "
           "fails "
           "and is tried again."},

    option{"relay.batch_max",
           kind::count,
           field<&config::relay, &relay_options::batch_max>(),
           {1, 10'000},
           "events",
           "Events per batch: one read, one publish, one commit. More is faster and holds more memory."},
    option{"relay.batch_bytes_max",
           kind::bytes,
           field<&config::relay, &relay_options::batch_bytes_max>(),
           {1, 1024 * mib},
           "",
           "Payload bytes per batch. A single larger event still goes, alone."},
    option{"relay.lease_ttl", kind::time, field<&config::relay, &relay_options::lease_ttl>(),
           between(milliseconds(50), hours(1)), "",
           "How long a silent relay keeps its part of the outbox. Shorter is a faster take-over and more "
           "renewals; it is never a question of correctness."},
    option{"relay.idle_poll", kind::time, field<&config::relay, &relay_options::idle_poll>(),
           between(milliseconds(1), minutes(1)), "",
           "How often to look for events without a wake-up. Commits wake the relay; this is the safety net."},
    option{"relay.source", kind::text, field<&config::relay, &relay_options::source>(), bytes_of_name, "",
           "The CloudEvents source of relayed messages. Empty: \"settle:\" and the database's own id. "
           "Consumers deduplicate by source and id, so do not change it while events are under way."},

    option{"relay.outbox_keep", kind::time, field<&config::relay, &relay_options::outbox_keep>(),
           between(milliseconds(0), hours(24 * 365)), "",
           "How long a published event stays readable in the outbox, counted from its commit."},
    option{
        "relay.natural_key_keep", kind::time, field<&config::relay, &relay_options::natural_key_keep>(),
        between(milliseconds(0), hours(24 * 365)), "",
        "How long publish_once() remembers that an event was published. Not shorter than relay.outbox_keep."},
    option{"relay.attempts_max",
           kind::count,
           field<&config::relay, &relay_options::attempts_max>(),
           {1, 1000},
           "attempts",
           "How often an event is offered to a broker that rejects it; then it is FAILED, and `settle outbox "
           "failed` lists it. Outages of the broker do not count."},
    option{"relay.hold_failed_keys",
           kind::flag,
           holds_failed_keys,
           {},
           "",
           "Whether later events of a key wait behind one that is FAILED until it is requeued. Otherwise "
           "they go on without it."},

    option{"broker.partitions",
           kind::count,
           field<&config::broker, &compose::broker_options::partitions>(),
           {1, 1024},
           "partitions",
           "Partitions of a topic that is used for the first time. Fixed for that topic from then on; it "
           "bounds how many members of a group work on it at once."},
    option{"broker.lease_ttl", kind::time, field<&config::broker, &compose::broker_options::lease_ttl>(),
           between(milliseconds(50), hours(1)), "",
           "How long a silent member of a group keeps its partitions."},
    option{
        "broker.keep", kind::time, field<&config::broker, &compose::broker_options::keep>(),
        between(milliseconds(0), hours(24 * 365)), "",
        "How long a message is kept at least. It goes when it is older and every group that ever subscribed "
        "to its topic has acknowledged it."},
    option{
        "broker.bytes_max",
        kind::bytes,
        field<&config::broker, &compose::broker_options::bytes_max>(),
        {mib, 1024 * 1024 * mib},
        "",
        "When the messages take more, publishing is refused: relays pause, nothing is lost, and they resume "
        "when there is room again. From nine tenths on that holds for topics of which a group without "
        "members has messages to read, so that others go on; `/readyz` and the log name the group."},

    option{
        "keys.redis", kind::redis, field<&config::keys_redis>(), bytes_of_store, "",
        "A Redis for the idempotency keys of /v1/keys. Empty: the service's database, which forgets nothing. "
        "Redis may: after a crash of the server its last second (appendfsync everysec), and then a request "
        "may run twice. One that evicts keys, keeps no append-only file or never syncs it (appendfsync no) "
        "is "
        "refused. The password is never shown."},

    option{"sweep.interval", kind::time, field<&config::sweep, &sweeping_options::interval>(),
           between(milliseconds(100), hours(24)), "",
           "How often to look for what can be removed from the service's database: records of idempotent "
           "requests whose time is over, and webhooks that are. Both go in slices with pauses between them."},
    option{"sweep.webhook_keep", kind::time, field<&config::sweep, &sweeping_options::webhook_keep>(),
           between(hours(1), hours(24 * 3650)), "",
           "How long webhooks that are over stay in the journal, and with them the knowledge that a copy is "
           "one. Much longer than a provider goes on trying, which may be days: what it first delivers after "
           "this time is taken for a copy. Workers of your own in the same database have a keep too; the "
           "shortest one decides."},

    option{"http.workers",
           kind::count,
           field<&config::http, &http::server_options::worker_threads>(),
           {1, 256},
           "threads",
           "Threads that answer what asks a database. Each may hold one connection to it; requests beyond "
           "them wait for their turn. Fewer spare a PostgreSQL connections, more let slow answers overlap."},
    option{"http.header_bytes_max",
           kind::bytes,
           field<&config::http, &http::server_options::header_bytes_max>(),
           {256, mib},
           "",
           "Largest head of a request. More is answered with 431."},
    option{"http.body_bytes_max",
           kind::bytes,
           field<&config::http, &http::server_options::body_bytes_max>(),
           {0, mib},
           "",
           "Largest body of a request. More is answered with 413. Each source of webhooks has its own."},
    option{"http.timeout", kind::time, field<&config::http_timeout>(), between(milliseconds(10), minutes(10)),
           "",
           "How long a client may take to send a request or to receive an answer. Also how long an idle "
           "connection is kept."},
    option{"http.connections_max",
           kind::count,
           field<&config::http, &http::server_options::connections_max>(),
           {1, 10'000},
           "connections",
           "Connections at once. A further one takes the place of the oldest without a complete request; if "
           "there is none, it is "
           "answered with 503, closed and counted."},
};

std::string spelled(std::string_view prefix, std::string_view name, char separator, bool upper) {
  std::string out(prefix);
  for (const char c : name) {
    const bool separates = c == '.' || c == '_';
    if (separates)
      out += separator;
    else
      out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
  }
  return out;
}

}  // namespace

std::span<const option> all_options() { return table; }

const option* find_option(std::string_view name) {
  const auto found = std::ranges::find(table, name, &option::name);
  return found == table.end() ? nullptr : &*found;
}

std::string environment_of(const option& of) { return spelled("SETTLE_", of.name, '_', true); }
std::string flag_of(const option& of) { return spelled("--", of.name, '-', false); }

}  // namespace settle::daemon

#include <algorithm>
#include <array>
#include <cctype>

#include "config/broker_rows.hpp"
#include "config/option.hpp"
#include "config/service_rows.hpp"

namespace settle::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

using config = configuration;

constexpr std::array general{
    option{"data", kind::text, field<&config::data>(), bytes_of_path, "",
           "Folder of settle.db, broker.db and settled.lock. Created, readable by its owner only, if it is "
           "not there; its parent must be. Not on a network filesystem."},
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
};

constexpr std::array of_http{
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

constexpr auto table = joined(general, service_rows<config, &config::service>(),
                              broker_rows<config, &config::broker>(), of_http);

constexpr std::array in_services_alone{
    service_option{
        "broker", kind::text, field<&service_settings::broker>(), bytes_of_name, "",
        "Name of the table [broker.NAME] that its events go to. Needed where there are several of them."},
};
constexpr auto of_services = joined(in_services_alone, service_rows<service_settings>());

constexpr std::array in_brokers_alone{
    broker_option{
        "url", kind::broker, field<&broker_settings::url>(), bytes_of_store, "",
        "Where it is: the file of an embedded broker, created if it is not there and not on a network "
        "filesystem; a RabbitMQ as amqp://USER:PASSWORD@HOST:PORT/VHOST, amqps:// with TLS; or a Kafka as "
        "kafka://USER:PASSWORD@HOST:PORT,HOST:PORT, kafkas:// with TLS. A password in it is never shown. "
        "Required."},
};
constexpr auto of_brokers = joined(in_brokers_alone, without_section(broker_rows<broker_settings>()));

constexpr std::array of_exchanges{
    exchange_option{"topic", kind::text, field<&rabbitmq::existing_exchange::topic>(), bytes_of_topic, "",
                    "Events of which topic. Required."},
    exchange_option{"exchange",
                    kind::text,
                    field<&rabbitmq::existing_exchange::exchange>(),
                    {0, 255},
                    "",
                    "The exchange that they go to, without the broker's prefix. It must be there. Empty: the "
                    "default exchange, whose routing keys are names of queues."},
    exchange_option{"routing_key",
                    kind::text,
                    field<&rabbitmq::existing_exchange::routing_key>(),
                    {0, 255},
                    "",
                    "Their routing key: text with {topic}, {type}, {key}, {subject} and {lane} in it."},
};

constexpr std::array of_routes{
    route_option{
        "topic", kind::text, field<&topic_route::topic>(), bytes_of_topic, "",
        "Which topics: a name, or a pattern with one `*`, which stands for any text. The first route "
        "that fits is taken; what fits none goes to the service's broker under its own name."},
    route_option{"broker", kind::text, field<&topic_route::broker>(), bytes_of_name, "",
                 "Name of the table [broker.NAME] that they go to. Empty: the service's."},
    route_option{
        "as",
        kind::text,
        field<&topic_route::as>(),
        {0, 255},
        "",
        "Their name there; a `*` is what that of the pattern stood for. Empty: as it is. Replays and "
        "dead letters have the name that their consumer knows, and are not renamed."},
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
std::span<const service_option> service_options() { return of_services; }
std::span<const broker_option> broker_options() { return of_brokers; }
std::span<const exchange_option> exchange_options() { return of_exchanges; }
std::span<const route_option> route_options() { return of_routes; }

const option* find_option(std::string_view name) {
  const auto found = std::ranges::find(table, name, &option::name);
  return found == table.end() ? nullptr : &*found;
}

std::string environment_of(const option& of) { return spelled("SETTLE_", of.name, '_', true); }
std::string flag_of(const option& of) { return spelled("--", of.name, '-', false); }

}  // namespace settle::config

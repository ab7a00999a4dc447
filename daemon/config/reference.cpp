#include "daemon/config/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "config/option.hpp"
#include "daemon/api/gauges.hpp"
#include "daemon/api/metric_table.hpp"
#include "settle/metrics.hpp"

namespace settle::daemon {
namespace {

using namespace config;

constexpr std::string_view configuration_head = R"(# Configuration of settled

<!-- Printed by `settled --print-config-reference`; a test compares. Change src/config/option_table.cpp instead. -->

Started without arguments, `settled` needs no configuration. Each setting can be given in four places; the first
of them that has it wins:

1. a flag on the command line,
2. an environment variable (an empty one counts as not set),
3. the file that `--config FILE` or `SETTLE_CONFIG` names, in [TOML](https://toml.io),
4. the default.

`settled --print-config` shows the effective values and where each came from, in the form of such a file. Whatever is
wrong is reported before anything is opened, with file and line, and the exit code is 2; an unknown key is answered
with the nearest one that exists.

Times are a whole number and a unit: `us`, `ms`, `s`, `m`, `h`, `d`. Sizes are a whole number of bytes, or one with
`B`, `KiB`, `MiB` or `GiB`. In a file, times, sizes with a unit, addresses and texts stand in quotes; counts, `true`
and `false` do not:

```toml
listen = "127.0.0.1:8600"
drain_timeout = "10s"

[relay]
batch_max = 500
batch_bytes_max = "4MiB"
```
)";

constexpr std::string_view configuration_tail = R"(
## Other flags

| flag | |
|---|---|
| `--config FILE` | read this file; also `SETTLE_CONFIG` |
| `--print-config` | print the effective values and where each came from, then end |
| `--print-config-reference` | print this page, then end |
| `--print-metrics-reference` | print [the metrics page](metrics.md), then end |
| `--version`, `--help` | |

## Exit codes

| code | |
|---|---|
| 0 | stopped by SIGTERM or SIGINT; a batch that took longer than `drain_timeout` was cancelled and will be sent again |
| 2 | bad configuration, or, of the short form, a data folder or an address that cannot be used, a database of a newer version, or one without Settle's tables while `migrate = false`, a Redis in `keys.redis` that may forget, a pooler in transaction mode in front of the database, or a second daemon on the same folder: the same start will fail again |
| 3 | a file is unavailable, busy or full: the same start may succeed later |
| 4 | there was no memory left where it could not be answered with 503; the last line says so, and nothing that was committed is lost |

A PostgreSQL that is away, or does not let us in, ends nothing: the daemon starts, says at `/readyz` that and in its log what
is wrong, tries again with pauses of at most 5 s, and goes on by itself when the server is back. A schema that is newer
than this build, or that is missing while `migrate = false`, ends the start with 2 if the server can be asked then, and
is a reason not to be ready if it is found later. So it is with the Redis of `keys.redis`: one that evicts keys, has no
append-only file or never syncs it ends the start with 2 if it can be asked then; found later, keys are answered with 503
`keys_store_unfit`, which says what to set, until it is mended.

The relay's leases and wake-ups and all prepared statements are in sessions, so the database is named itself, or behind a
pool with `pool_mode = session`. A pooler in transaction mode ends the start with 2; one that is put in between later is a
reason not to be ready, and keys are answered with 503.

A start that fails leaves nothing behind that was not there.

A second SIGTERM or SIGINT ends the process at once. Nothing is lost by that: it is a crash, and crashes are covered.
)";

constexpr std::string_view services_head = R"(
## Many services: tables `[service.NAME]` and `[broker.NAME]`

One daemon serves as many as {} services. Each has its own database, relay, sweeper, webhooks and gauges; one that is away,
slow, full or set up wrongly delays nobody else, and [the guide](../operating/deployment.md) says how it is run. NAME is 1 to
63 letters, digits, `-` and `_`, and appears in log lines (`service=orders`), in metrics (`service="orders"`) and in paths:
`/services/orders/v1/keys/claim`, `/services/orders/webhooks/stripe`, `/readyz?service=orders`.

```toml
[broker.main]
url = "/var/lib/settle/broker.db"

[service.orders]
database = "host=db dbname=orders user=settled"
broker = "main"

[service.payments]
database_env = "PAYMENTS_DATABASE"      # the variable that holds it, password included

[service.payments.relay]
batch_max = 1000                        # else as [relay] at the top says

[[service.payments.route]]
topic = "payments.*"
as = "shop.payments.*"
```

What a service's table does not say comes from the setting of the same name at the top of the file. A file without such
tables, and no file at all, is the short form: one service without a name, whose settings are those above.

**Secrets**: a setting that may hold a password, `database`, `url` or `keys.redis`, can also be given as NAME`_env`, which
names an environment variable, or NAME`_file`, which names a file. They are read at the start and with every SIGHUP, and
appear in no output, log line, error or process list.

**SIGHUP** reads the file again. Services that are told the same as before notice nothing; others are started, ended or, if
they are told something else, replaced, and what is under way is finished. `listen` and `[http]` stay as they are until the
daemon is started again; the log names those that differ. A file with a mistake, or with another `data`, changes nothing,
and the log says what is wrong.

)";

constexpr std::string_view brokers_head = R"(
In `[broker.NAME]`, of which there may be {}. A file without one has the embedded broker of the data folder.

)";

constexpr std::string_view exchanges_head = R"(
### Exchanges of others: `[[broker.NAME.exchange]]`

Topics whose events go to an exchange of a RabbitMQ that somebody else has made, instead of one that Settle makes; at most {}.

)";

constexpr std::string_view routes_head = R"(
### Routes: `[[service.NAME.route]]`

Where topics go, and what they are called there; `[[route]]` in the short form. The first that fits is taken, of at most {}.

)";

constexpr std::string_view webhooks_head = R"(
## Tables `[webhook.NAME]`, and `[service.NAME.webhook.NAME]`

Each is a source of webhooks, taken at `POST /webhooks/NAME`, or at `POST /services/NAME/webhooks/NAME`: verified, journaled in the service's database, answered, and
then published as an event to a topic. [The guide](../guides/webhooks.md#with-settled) says more. NAME is 1 to 100 letters,
digits, `-` and `_`; there may be {} of them, in the file only.

```toml
[webhook.stripe]
scheme = "stripe"
keys_env = "STRIPE_WEBHOOK_SECRET"
topic = "payments"
```

Keys never stand in the file: `keys_env` and `keys_file` say where they are, and they are read at the start and with SIGHUP. They
appear in no output, log line or error.

)";

constexpr std::string_view metrics_head = R"(# Metrics

<!-- Printed by `settled --print-metrics-reference`; a test compares. Change daemon/api/metric_table.cpp instead. -->

`settled` serves these at `GET /metrics` in the Prometheus text format. Counters count what happened in the process
that is asked, since its start: a consumer that runs in your own program counts there, in `env.counters`, under the
same names. Gauges are read from the stores when they are asked for, so they cover every process that shares the files.
Histograms are counted like counters, in seconds, with the same {} buckets for all, from {} to {}: as NAME_bucket with the
label `le`, NAME_sum and NAME_count.

```promql
histogram_quantile(0.99, sum by (le) (rate(settle_relay_publish_delay_seconds_bucket[5m])))
```

)";

std::string section_of(const option& of) {
  const auto dot = of.name.find('.');
  return std::string(dot == std::string_view::npos ? std::string_view() : of.name.substr(0, dot));
}

std::string row_of(const option& of) {
  const configuration defaults;
  const auto fallback = shown(defaults, of);
  return fmt::format("| `{}` | `{}` | `{}` | {} | {} | {}{} |\n", of.name, environment_of(of), flag_of(of),
                     fallback.empty() ? "empty" : "`" + fallback + "`", allowed_text(of), of.meaning,
                     of.secret ? " Secret: never shown." : "");
}

// The rows of one table of the file.
template <class Settings>
std::string rows_of(std::span<const option_of<Settings>> options) {
  std::string out = "| key | default | allowed | meaning |\n|---|---|---|---|\n";
  const Settings defaults;
  for (const auto& one : options) {
    const auto fallback = shown(defaults, one);
    out += fmt::format("| `{}` | {} | {} | {} |\n", one.name,
                       fallback.empty() ? "empty" : "`" + fallback + "`", allowed_text(one), one.meaning);
  }
  return out;
}

// Only what a service has beyond the settings that stand at the top, too.
std::string services_section() {
  const auto alone = [](const service_option& one) { return find_option(one.name) == nullptr; };
  std::vector<service_option> own;
  std::ranges::copy_if(service_options(), std::back_inserter(own), alone);
  auto page = fmt::format(services_head, services_max);
  page +=
      "In `[service.NAME]`, beside `database`, `migrate`, `busy_timeout`, and the sections `relay`, `keys` "
      "and `sweep`:\n\n";
  page += rows_of(std::span<const service_option>(own));
  page += fmt::format(brokers_head, brokers_max) + rows_of(broker_options());
  page += fmt::format(exchanges_head, exchanges_max) + rows_of(exchange_options());
  return page + fmt::format(routes_head, routes_max) + rows_of(route_options());
}

std::string default_of(const webhook_option& of, std::string_view scheme) {
  if (!is_for(of, scheme)) return "–";
  const auto text = shown(webhook_defaults("NAME", scheme), of);
  if (of.name == "scheme" || (of.name == "event_id" && text.empty())) return "required";
  return text.empty() ? "empty" : fmt::format("`{}`", text);
}

std::string webhooks_section() {
  auto page = fmt::format(webhooks_head, webhook_sources_max);
  page +=
      "| key | default for stripe | for standard | for hmac | allowed | meaning "
      "|\n|---|---|---|---|---|---|\n";
  for (const auto& one : webhook_options())
    page += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", one.name, default_of(one, "stripe"),
                        default_of(one, "standard"), default_of(one, "hmac"), allowed_text(one), one.meaning);
  return page;
}

std::string labels_of(const metric& of) {
  std::string out;
  for (std::string_view rest = of.labels; !rest.empty();) {
    const auto comma = rest.find(", ");
    out += fmt::format("{}`{}`", out.empty() ? "" : ", ", rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
  }
  return out;
}

}  // namespace

std::string configuration_reference() {
  std::string page(configuration_head);
  std::string section = "-";
  for (const auto& one : all_options()) {
    if (const auto here = section_of(one); here != section) {
      section = here;
      page += fmt::format("\n## {}\n\n", here.empty() ? "General" : fmt::format("Section `[{}]`", here));
      page += "| key | environment | flag | default | allowed | meaning |\n|---|---|---|---|---|---|\n";
    }
    page += row_of(one);
  }
  return page.append(services_section()).append(webhooks_section()).append(configuration_tail);
}

std::string metrics_reference() {
  const auto seconds = [](duration of) {
    return fmt::format("{} s", std::chrono::duration<double>(of).count());
  };
  auto page = fmt::format(metrics_head, time_counts::bounds.size(), seconds(time_counts::bounds.front()),
                          seconds(time_counts::bounds.back()));
  page += "| name | type | labels | meaning |\n|---|---|---|---|\n";
  for (const auto& one : all_metrics())
    page += fmt::format("| `{}` | {} | {} | {} |\n", one.name, to_string(one.type), labels_of(one), one.help);
  page +=
      fmt::format("\nAt most {} topics and {} pairs of group and topic are shown.\n", series_max, series_max);
  return page;
}

}  // namespace settle::daemon

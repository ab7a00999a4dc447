// Settings of the server, the database and its roles that take back what a commit promises.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks.hpp"
#include "queries/doctor.hpp"
#include "settle/driver/database.hpp"

namespace settle::doctor {
namespace {

struct rule {
  std::string_view name;
  bool (*bad)(const std::string& value);
  severity level;
  const char* good;
  const char* why;
};

bool is_off(const std::string& value) {
  return value == "off" || value == "false" || value == "no" || value == "0";
}
bool is_on(const std::string& value) {
  return value == "on" || value == "true" || value == "yes" || value == "1";
}
bool is_not_read_committed(const std::string& value) { return value != "read committed"; }

constexpr rule rules[] = {
    {"fsync", is_off, severity::problem, "on",
     "after a power cut the whole cluster can be damaged beyond repair, not only the last commits"},
    {"full_page_writes", is_off, severity::problem, "on",
     "a power cut can leave half-written pages that recovery cannot mend; only a file system that writes "
     "pages "
     "whole (ZFS) makes this safe"},
    {"synchronous_commit", is_off, severity::problem, "on",
     "a commit returns before it is on disk. Relays publish nothing that could still vanish, because their "
     "ticks "
     "are synced; but what the service told its caller is committed can be gone after a crash, with its "
     "event, and "
     "a consumer can acknowledge a message whose effects then vanish"},
    {"default_transaction_isolation", is_not_read_committed, severity::warning, "'read committed'",
     "Settle's own transactions state their level; those of yours that call settle.publish or claim natural "
     "keys "
     "get serialization failures under load, and have to be repeated"},
    {"default_transaction_read_only", is_on, severity::problem, "off",
     "nothing can be published, relayed or consumed"},
    {"autovacuum", is_off, severity::problem, "on",
     "tables that are updated grow without end, and the server stops when it runs out of transaction ids"},
    {"track_counts", is_off, severity::problem, "on",
     "autovacuum works by these counts; without them it does nothing"},
};

const rule* broken_rule(const std::string& name, const std::string& value) {
  const auto* found = std::ranges::find_if(rules, [&](const rule& one) { return one.name == name; });
  return found != std::end(rules) && found->bad(value) ? found : nullptr;
}

finding unsafe(const rule& of, const std::string& value, const std::string& where) {
  return {.level = of.level,
          .code = "unsafe_" + std::string(of.name),
          .title = fmt::format("{} is {}", of.name, value),
          .seen = fmt::format("{} = {}, set for {}", of.name, value, where),
          .why = of.why};
}

// The session that mends it has the setting too.
std::string allow_writing(const rule& of) {
  return of.name == "default_transaction_read_only" ? "set default_transaction_read_only = off;\n" : "";
}

// What a database or a role says is found where it is said; here is the rest.
bool said_elsewhere(const std::string& source) {
  return source == "database" || source == "user" || source == "database user" || source == "global";
}

void find_server_settings(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::session_settings_columns;
  const auto rows = tx.execute(queries::doctor::session_settings);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto &name = rows[i][columns::name].text(), &value = rows[i][columns::setting].text(),
               &source = rows[i][columns::source].text();
    const auto* broken = broken_rule(name, value);
    if (broken == nullptr || said_elsewhere(source)) continue;
    auto found = unsafe(*broken, value, "the server (" + source + ")");
    if (source == "client" || source == "session")
      found.advice =
          fmt::format("The connection string or PGOPTIONS of this program says so: take {} out.", name);
    else
      found.fix = fmt::format("{}alter system set {} = {};\nselect pg_reload_conf();", allow_writing(*broken),
                              name, broken->good);
    if (source == "command line")
      found.advice = "The server's command line says so and wins: change it there.";
    into.push_back(std::move(found));
  }
}

void find_scoped_settings(transaction& tx, const limits&, findings& into) {
  namespace columns = queries::doctor::scoped_settings_columns;
  const auto rows = tx.execute(queries::doctor::scoped_settings);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& value = rows[i][columns::setting].text();
    const auto* broken = broken_rule(rows[i][columns::name].text(), value);
    if (broken == nullptr) continue;
    auto found = unsafe(*broken, value, rows[i][columns::scope].text());
    found.fix = allow_writing(*broken) + rows[i][columns::fix].text();
    found.advice = "Sessions that are open keep it until they connect again.";
    into.push_back(std::move(found));
  }
}

void find_standby(transaction& tx, const limits&, findings& into) {
  const auto server = identity_of(tx);
  if (!server || !server->in_recovery) return;
  into.push_back({.level = severity::problem,
                  .code = "standby",
                  .title = "This is a standby",
                  .seen = "the server is in recovery and takes no writes",
                  .why = "nothing can be published, relayed or consumed through this connection",
                  .advice =
                      "Connect to the primary; with several hosts in the connection string, add "
                      "target_session_attrs=read-write. If the primary is gone, promote this server and then "
                      "run select settle.rebase_outbox();"});
}

constexpr check all[] = {
    {"the server's role", "The server is a primary", find_standby},
    {"the server's settings", "The server's settings make commits durable", find_server_settings},
    {"settings of databases and roles", "No database or role has unsafe settings of its own",
     find_scoped_settings},
};

}  // namespace

void note_pooler(findings& into) {
  const auto at =
      std::ranges::find_if(into, [](const finding& one) { return one.level != severity::problem; });
  into.insert(
      at,
      {.level = severity::warning,
       .code = "pooler",
       .title = "A pooler stands between this program and the server",
       .seen = "the process that answers is not the one that the connection was greeted by",
       .why = "a pooler in transaction mode (PgBouncer) hands sessions around: prepared statements fail, "
              "and commits of other processes wake no relay, so events wait for its next poll",
       .advice = "Programs that go through it need prepared_statements = false. Give relays and the daemon "
                 "a direct connection."});
}

std::span<const check> setting_checks() { return all; }

}  // namespace settle::doctor

#include "postgres/sqlstate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

namespace settle::inline v0::postgres {
namespace {

struct entry {
  std::string_view prefix;
  errc code;
};

// A class (two characters), or a single state where it differs from its class.
constexpr entry table[] = {
    {"08", errc::store_unavailable},     // connection exception
    {"08P01", errc::statement_failed},   // the wrong number of values
    {"22", errc::invalid_argument},      // a value that its type does not accept
    {"23", errc::constraint_violated},   //
    {"25006", errc::store_unavailable},  // read-only: a standby, or an administrator's decision
    {"25P02", errc::transaction_lost},   // an earlier statement has failed
    {"26000",
     errc::store_unavailable},        // a prepared statement is gone: the session is not the one that it was
    {"28", errc::store_unavailable},  // the server does not let us in
    {"3D", errc::store_unavailable},  // there is no such database
    {"40001", errc::store_busy},      // serialization failure
    {"40002", errc::constraint_violated},
    {"40003", errc::store_unavailable},  // completion unknown
    {"40P01", errc::store_busy},         // deadlock
    {"42P05", errc::store_unavailable},  // a prepared statement is there already: likewise
    {"44", errc::constraint_violated},   // a view's check option
    {"53", errc::store_unavailable},     // memory, configured limits
    {"53100", errc::store_full},         // disk
    {"53300", errc::store_busy},         // too many connections
    {"55006", errc::store_busy},         // object in use
    {"55P03", errc::store_busy},         // lock not available: lock_timeout or NOWAIT
    {"57", errc::store_unavailable},     // shutdown, restart, database dropped
    {"57014", errc::store_busy},         // cancelled: a timeout, or somebody else
    {"58", errc::store_unavailable},     // I/O
    {"72", errc::store_busy},            // snapshot too old
    {"XX001", errc::store_corrupt},      // data corrupted
    {"XX002", errc::store_corrupt},      // index corrupted
};

std::string_view field(const PGresult* answer, int which) {
  const char* found = PQresultErrorField(answer, which);
  return found != nullptr ? found : "";
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

// Settle's own tables and functions are all in the schema `settle`.
bool names_our_schema(std::string_view sqlstate, std::string_view text) {
  if (sqlstate == "3F000") return text.find("settle") != std::string_view::npos;
  const bool undefined = sqlstate == "42P01" || sqlstate == "42883";
  return undefined && text.find("settle.") != std::string_view::npos;
}

std::string_view advice_for(std::string_view sqlstate) {
  if (sqlstate == "25006")
    return "; this is a standby, or the server is set to default_transaction_read_only: connect to the "
           "primary (target_session_attrs=read-write)";
  if (sqlstate == "26000" || sqlstate == "42P05")
    return "; a pooler in transaction mode hands sessions around: connect to the server itself or in session "
           "mode, or "
           "open with prepared_statements = false";
  if (sqlstate == "53300") return "; raise the server's max_connections or lower connections_max";
  if (sqlstate == "42501") return "; grant it to the role that this program connects as";
  return "";
}

// PQERRORS_VERBOSE writes `FATAL:  53300: sorry, …`.
std::string find_sqlstate(std::string_view message) {
  for (std::size_t at = 0; (at = message.find(":  ", at)) != std::string_view::npos; at += 3) {
    const auto state = message.substr(at + 3, 5);
    const auto is_code = [](unsigned char c) { return std::isdigit(c) != 0 || std::isupper(c) != 0; };
    if (state.size() == 5 && std::ranges::all_of(state, is_code) && message.substr(at + 8, 2) == ": ")
      return std::string(state);
  }
  return {};
}

}  // namespace

errc code_of_sqlstate(std::string_view sqlstate) {
  const entry* best = nullptr;
  for (const auto& one : table)
    if (sqlstate.starts_with(one.prefix) && (best == nullptr || one.prefix.size() > best->prefix.size()))
      best = &one;
  return best != nullptr ? best->code : errc::statement_failed;
}

error server_failure::as_error(std::string_view during, std::string_view database) const {
  const auto state = sqlstate.empty() ? std::string() : fmt::format(" (SQLSTATE {})", sqlstate);
  return {code, fmt::format("{} on {}: {}{}{}", during, database, text, state, advice_for(sqlstate))};
}

server_failure read_failure(const PGresult* answer) {
  server_failure made;
  made.sqlstate = field(answer, PG_DIAG_SQLSTATE);
  made.text = trimmed(field(answer, PG_DIAG_MESSAGE_PRIMARY));
  made.in_function = !field(answer, PG_DIAG_CONTEXT).empty();
  auto severity = field(answer, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity.empty()) severity = field(answer, PG_DIAG_SEVERITY);  // a pooler's, which translates nothing
  made.session_ended = severity == "FATAL" || severity == "PANIC";
  if (made.sqlstate.empty()) {
    made.code = errc::store_unavailable;
    made.text = trimmed(PQresultErrorMessage(answer));
    return made;
  }
  made.code = made.session_ended ? errc::store_unavailable : code_of_sqlstate(made.sqlstate);
  if (names_our_schema(made.sqlstate, made.text)) made.code = errc::schema_missing;
  // A migration changed a table under a prepared statement: another session prepares it anew.
  const bool plan_outdated =
      made.sqlstate == "0A000" && field(answer, PG_DIAG_SOURCE_FUNCTION) == "RevalidateCachedQuery";
  if (plan_outdated) made.code = errc::store_busy;
  // A session keeps the default_transaction_read_only that it began with.
  made.session_outdated =
      plan_outdated || made.sqlstate == "26000" || made.sqlstate == "42P05" || made.sqlstate == "25006";
  return made;
}

server_failure read_connect_failure(std::string_view message) {
  server_failure made;
  made.sqlstate = find_sqlstate(message);
  made.code = made.sqlstate.empty() ? errc::store_unavailable : code_of_sqlstate(made.sqlstate);
  if (made.code != errc::store_busy) made.code = errc::store_unavailable;
  for (std::size_t at = 0; at < message.size();) {
    const auto line = message.substr(at, message.find('\n', at) - at);
    at += line.size() + 1;
    if (line.starts_with("LOCATION:") || trimmed(line).empty()) continue;
    made.text.append(made.text.empty() ? "" : "; ").append(trimmed(line));
  }
  return made;
}

}  // namespace settle::inline v0::postgres

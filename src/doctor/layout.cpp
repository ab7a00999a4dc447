#include "doctor/layout.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string_view>

namespace settle::doctor {
namespace {

using names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 22> status_names{
    "status",       "state",         "published",     "processed",   "sent",        "dispatched",
    "delivered",    "handled",       "ispublished",   "isprocessed", "issent",      "publishedat",
    "processedat",  "sentat",        "dispatchedat",  "deliveredat", "publishedon", "processedon",
    "dispatchedon", "processeddate", "publisheddate", "relayedat"};
constexpr std::array<std::string_view, 10> key_names{
    "aggregateid", "aggregatekey", "partitionkey", "orderingkey", "messagekey",
    "eventkey",    "entityid",     "streamid",     "routingkey",  "key"};
constexpr std::array<std::string_view, 5> event_names{"eventid", "messageid", "idempotencykey", "uuid", "id"};
constexpr std::array<std::string_view, 10> time_names{"createdat",  "occurredat", "insertedat",  "createdon",
                                                      "occurredon", "enqueuedat", "createddate", "timestamp",
                                                      "created",    "time"};
constexpr std::array<std::string_view, 1> aggregate_type_names{"aggregatetype"};
constexpr std::array<std::string_view, 1> payload_names{"payload"};

// created_at, createdAt and CREATED_AT are one name.
std::string plain(const std::string& name) {
  std::string out;
  for (const char c : name)
    if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// The first of these names that a column has and that suits.
template <class Suits>
std::optional<column> pick(const std::vector<column>& from, names wanted, Suits suits) {
  for (const auto name : wanted)
    for (const auto& one : from)
      if (plain(one.name) == name && suits(one)) return one;
  return std::nullopt;
}

bool any(const column&) { return true; }
bool numbered(const column& of) { return of.numbered; }
bool identifies(const column& of) { return !of.numbered && !holds_time(of); }

bool holds_transaction(const column& of) {
  return of.type == "xid8" || of.type == "xid" || of.type == "pg_snapshot" || of.type == "txid_snapshot" ||
         of.initial.find("txid_current") != std::string::npos ||
         of.initial.find("pg_current_xact_id") != std::string::npos;
}

template <class Suits>
std::optional<column> first(const std::vector<column>& from, Suits suits) {
  const auto found = std::ranges::find_if(from, suits);
  return found == from.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

bool holds_time(const column& of) { return of.type.starts_with("timestamp") || of.type == "date"; }

layout read_layout(const std::vector<column>& columns) {
  layout found;
  found.status = pick(columns, status_names, any);
  found.key = pick(columns, key_names, any);
  found.event = pick(columns, event_names, identifies);
  found.number = first(columns, numbered);
  found.time = pick(columns, time_names, holds_time);
  found.transaction = first(columns, holds_transaction);
  const bool debezium =
      found.key && pick(columns, aggregate_type_names, any) && pick(columns, payload_names, any);
  if (found.status)
    found.kind = layout_kind::status;
  else if (debezium && !found.number)
    found.kind = layout_kind::debezium;
  return found;
}

std::string pending_condition(const column& status) {
  if (holds_time(status)) return status.quoted + " is null";
  if (status.type == "boolean") return "not " + status.quoted;
  if (!status.initial.empty()) return status.quoted + " = " + status.initial;
  return {};
}

}  // namespace settle::doctor

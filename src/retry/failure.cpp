#include "settle/failure.hpp"

#include <fmt/format.h>

#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

failure_class class_of_code(errc code) {
  switch (code) {
    case errc::store_unavailable:
    case errc::store_full:
    case errc::store_corrupt:
    case errc::schema_missing:
    case errc::schema_newer:
    case errc::cluster_changed:
    case errc::destination_unavailable:
      return failure_class::outage;
    case errc::store_busy:
    case errc::ownership_lost:  // of a lock
      return failure_class::transient;
    case errc::decode_failed:
    case errc::invalid_argument:
    case errc::invalid_name:
    case errc::message_id_missing:
    case errc::payload_too_large:
      return failure_class::permanent;
    default:
      return failure_class::poison;
  }
}

struct sqlstate_entry {
  std::string_view prefix;
  failure_class of;
};

// A class (two characters), or a single state where it differs from its class.
constexpr sqlstate_entry sqlstates[] = {
    {"08", failure_class::outage},        // connection exception
    {"22", failure_class::permanent},     // a value that its type does not accept
    {"25006", failure_class::outage},     // read-only: a standby
    {"25P03", failure_class::transient},  // idle in a transaction for too long
    {"25P04", failure_class::transient},  // transaction_timeout
    {"28", failure_class::outage},        // the server does not let us in
    {"3D", failure_class::outage},        // there is no such database
    {"40", failure_class::transient},     // deadlock, serialization failure, completion unknown
    {"40002", failure_class::poison},     // a constraint
    {"53", failure_class::outage},        // disk, memory, connections
    {"55006", failure_class::transient},  // object in use
    {"55P03", failure_class::transient},  // lock not available: lock_timeout or NOWAIT
    {"57014", failure_class::transient},  // statement_timeout, or somebody's cancel
    {"57", failure_class::outage},        // shutdown, restart, database dropped
    {"58", failure_class::outage},        // I/O
    {"72", failure_class::transient},     // snapshot too old
};

}  // namespace

std::string_view to_string(failure_class of) {
  switch (of) {
    case failure_class::outage:
      return "outage";
    case failure_class::transient:
      return "transient";
    case failure_class::permanent:
      return "permanent";
    case failure_class::poison:
      return "poison";
  }
  return "poison";
}

failure_class class_of(const std::exception& thrown) {
  if (const auto* own = dynamic_cast<const handler_failed*>(&thrown)) return own->why();
  if (const auto* ours = dynamic_cast<const error*>(&thrown)) return class_of_code(ours->code());
  return failure_class::poison;
}

failure_class class_of_http_status(int status) {
  if (status < 100 || status > 599 || (status >= 200 && status < 300))
    throw error(errc::invalid_argument, fmt::format("{} is no HTTP status of a failure", status));
  switch (status) {
    case 401:  // who we are is not accepted: of any message
    case 407:
    case 429:
    case 502:
    case 503:
    case 504:
    case 507:
    case 511:
      return failure_class::outage;
    case 408:
    case 409:
    case 423:
    case 425:
      return failure_class::transient;
    case 501:
    case 505:
      return failure_class::permanent;
    default:  // whatever else a server says of itself means what 500 does
      return status >= 500 ? failure_class::poison : failure_class::permanent;
  }
}

failure_class class_of_sqlstate(std::string_view sqlstate) {
  const sqlstate_entry* best = nullptr;
  for (const auto& one : sqlstates)
    if (sqlstate.starts_with(one.prefix) && (best == nullptr || one.prefix.size() > best->prefix.size()))
      best = &one;
  return best != nullptr ? best->of : failure_class::poison;
}

}  // namespace settle::inline v0

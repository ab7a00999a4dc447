#include "outbox/natural_key.hpp"

#include <algorithm>
#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid.hpp>
#include <string>

namespace settle::outbox {
namespace {

// The name space of Settle's natural keys. Fixed for ever: ids that were derived once must be found again.
constexpr boost::uuids::uuid name_space = {
    {0x7c, 0x1d, 0x5b, 0x0e, 0x52, 0x9a, 0x4e, 0x31, 0x9b, 0x64, 0x1f, 0x83, 0x0a, 0xd6, 0x27, 0xc5}};

}  // namespace

event_id derived_id(std::initializer_list<std::string_view> parts) {
  std::string joined;
  for (const auto part : parts) joined.append(std::to_string(part.size())).append(":").append(part);
  const auto made = boost::uuids::name_generator_sha1(name_space)(joined);
  uuid::bytes_type bytes{};
  std::copy(made.begin(), made.end(), bytes.begin());
  return event_id(uuid(bytes));
}

event_id natural_id(const event& what) {
  return derived_id({what.topic, what.aggregate_type, what.key, what.type});
}

event_id row_event_id(std::string_view database, std::string_view table, std::string_view row) {
  return derived_id({"settle", "table", database, table, row});
}

}  // namespace settle::outbox

#include "outbox/natural_key.hpp"

#include "base/derived_id.hpp"

namespace settle::outbox {

event_id natural_id(const event& what) {
  return derived_id({what.topic, what.aggregate_type, what.key, what.type});
}

event_id row_event_id(std::string_view database, std::string_view table, std::string_view row) {
  return derived_id({"settle", "table", database, table, row});
}

}  // namespace settle::outbox

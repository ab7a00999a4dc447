#include "base/derived_id.hpp"

#include <algorithm>
#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid.hpp>
#include <string>

#include "base/parts.hpp"

namespace settle::inline v0 {
namespace {

// The name space of Settle's natural keys. Fixed for ever: ids that were derived once must be found again.
constexpr boost::uuids::uuid name_space = {
    {0x7c, 0x1d, 0x5b, 0x0e, 0x52, 0x9a, 0x4e, 0x31, 0x9b, 0x64, 0x1f, 0x83, 0x0a, 0xd6, 0x27, 0xc5}};

}  // namespace

event_id derived_id(std::initializer_list<std::string_view> parts) {
  std::string joined;
  for (const auto part : parts) append_part(joined, part);
  const auto made = boost::uuids::name_generator_sha1(name_space)(joined);
  uuid::bytes_type bytes{};
  std::copy(made.begin(), made.end(), bytes.begin());
  return event_id(uuid(bytes));
}

}  // namespace settle::inline v0

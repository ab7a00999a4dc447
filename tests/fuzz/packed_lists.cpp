// Fuzz entry for the packed lists that a consumer keeps beside its records: a file may be damaged, or written
// by somebody else.
//
// Reading ends, and within the bytes that there are; what was read whole is the same again after it is packed
// once more.
#include <algorithm>
#include <string>
#include <vector>

#include "base/packed.hpp"
#include "fuzz/entries.hpp"

namespace settle::fuzz {
namespace {

struct read_keys {
  std::vector<std::string> keys;
  bool is_broken = false;
};

read_keys keys_of(std::string_view packed) {
  read_keys found;
  packed_keys from(packed);
  while (from.next()) {
    found.keys.emplace_back(from.key());
    require(found.keys.size() <= packed.size() + packed_same_keys_max);
  }
  require(!from.next());
  found.is_broken = from.is_broken();
  return found;
}

void check_keys(std::string_view packed) {
  const auto read = keys_of(packed);
  if (read.is_broken) return;
  const std::vector<std::string_view> views(read.keys.begin(), read.keys.end());
  auto again = keys_of(pack_keys(views)).keys;
  // Ids come first, also those that were written as texts.
  auto expected = read.keys;
  std::ranges::sort(expected);
  std::ranges::sort(again);
  require(again == expected);
}

struct read_place {
  std::string log;
  std::string position;
  std::string source;
  int lane = 0;
  std::string place;
  bool operator==(const read_place&) const = default;
};

bool read_places(std::string_view packed, std::vector<read_place>& into) {
  packed_places from(packed);
  while (from.next()) {
    into.push_back({std::string(from.log()), std::string(from.position()), std::string(from.source()),
                    from.lane(), from.place()});
    require(into.size() <= packed.size());
  }
  return !from.is_broken();
}

void check_places(std::string_view packed) {
  std::vector<read_place> read, again;
  if (!read_places(packed, read)) return;
  std::vector<log_places> logs;
  for (const auto& one : read)
    logs.push_back({one.log, one.position, {{one.source, {{one.lane, one.place}}}}});
  require(read_places(pack_places(logs), again) && again == read);
}

}  // namespace

void packed_lists(std::string_view input) {
  check_keys(input);
  check_places(input);
}

}  // namespace settle::fuzz

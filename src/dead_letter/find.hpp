// Which letters a filter means.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "settle/dead_letter.hpp"

namespace settle::inline v0::dlq {

struct id_range {
  std::int64_t after = 0;
  std::int64_t upto = std::numeric_limits<std::int64_t>::max();
};

// A filter that is looked for in one status.
class search {
 public:
  search(const dead_letter_filter& which, dead_letter_status status);

  // For a replay: only those that were not asked for again after `asked_until`. Of those that are NEW none
  // that may have been applied long ago, unless the filter names it by its id or by that reason.
  static search to_replay(const dead_letter_filter& which, dead_letter_status status, timestamp asked_until);

  // Ids in order, at most so many.
  std::vector<std::int64_t> find(transaction& tx, const id_range& in, std::size_t at_most) const;

  struct extent {
    std::int64_t count = 0;
    std::int64_t highest = 0;
  };
  extent measure(transaction& tx) const;
  // How many more would match, if none had to be spared.
  std::int64_t count_spared(transaction& tx) const;

 private:
  bool by_id() const { return !which_.ids.empty() || !which_.event_id.empty(); }
  std::vector<std::int64_t> wanted(transaction& tx, const id_range& in) const;
  std::vector<std::int64_t> find_among(transaction& tx, const id_range& in, std::size_t at_most) const;
  void append_conditions(parameters& to) const;

  dead_letter_filter which_;
  std::string status_;
  timestamp asked_until_ = timestamp::max();
  bool spares_copies_ = false;
};

// For statements that take a list as one parameter.
std::string json_ids(std::span<const std::int64_t> ids);

}  // namespace settle::inline v0::dlq

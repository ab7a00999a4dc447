// What a worker knows of one source: its handlers, whether what they need is away, and how many events it has
// begun with care since it was started. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "retry/outage.hpp"
#include "webhook/journal.hpp"

namespace settle::hooks {

// An event that ended its process was the first of its source that was due, and still is when the next
// process looks: it is among the first few, give or take clocks and other workers. Those are marked before
// they run, which costs a commit for each; later ones are not.
constexpr std::int64_t marked_after_start = 64;
// How long an event rests over which a process has ended. Far longer than it takes from the mark to the
// transaction that takes the event.
constexpr retry::backoff mark_pauses{std::chrono::seconds(2), std::chrono::minutes(5)};

class source_state {
 public:
  explicit source_state(const retry::backoff& outage_pauses) : away_(outage_pauses) {}

  void add(std::string_view type, handler with) { handlers_[std::string(type)] = std::move(with); }
  const handler* handler_of(const received& what) const {
    auto found = handlers_.find(what.type);
    if (found == handlers_.end()) found = handlers_.find("");
    return found == handlers_.end() ? nullptr : &found->second;
  }

  const retry::outage& away() const { return away_; }

  // Whether a failure of this event is that of all events of the source.
  bool is_everybodys(failure_class why, std::int64_t row) const {
    const auto before = met_.find(row);
    return retry::is_everybodys(why, before != met_.end() ? before->second : retry::met_outages(), applied_);
  }
  void meets_outage(std::int64_t row, timestamp now) {
    if (met_.size() >= met_max) met_.clear();  // at the price of a pause more
    met_[row].meet(applied_);
    away_.goes_on(now);
  }
  // How long the outage has lasted that this has ended.
  std::optional<duration> got_through(std::int64_t row, timestamp now) {
    ++applied_;
    met_.erase(row);
    return away_.lasts() ? std::optional(away_.ends(now)) : std::nullopt;
  }

  bool is_doubted(const taken& one) const { return one.starts > 0 || marked_ < marked_after_start; }
  void marked() { ++marked_; }

 private:
  static constexpr std::size_t met_max = 10'000;

  std::map<std::string, handler, std::less<>> handlers_;  // by type
  retry::outage away_;
  std::int64_t applied_ = 0;
  std::map<std::int64_t, retry::met_outages> met_;  // by row
  std::int64_t marked_ = 0;
};

}  // namespace settle::hooks

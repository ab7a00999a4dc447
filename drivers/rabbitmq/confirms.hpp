// What has become of the messages of one batch. Pure: numbers, returns and confirmations in, results out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rabbitmq/connection.hpp"
#include "settle/driver/broker.hpp"

namespace settle::inline v0::rabbitmq {

class confirms {
 public:
  // The channel counts its messages; the first of these gets the number `first`.
  explicit confirms(std::uint64_t first) : first_(first) {}

  std::uint64_t next_number() const { return first_ + states_.size(); }
  void sent() { states_.push_back(state::open); }

  // A returned message is confirmed afterwards, and never counts as confirmed.
  void take(const confirmation& said);
  void take_return(std::uint64_t number);

  bool complete() const { return open_from_ == states_.size(); }
  bool is_confirmed(std::size_t index) const { return states_.at(index) == state::confirmed; }
  bool is_returned(std::size_t index) const { return states_.at(index) == state::returned; }
  bool is_refused(std::size_t index) const { return states_.at(index) == state::refused; }
  std::size_t count() const { return states_.size(); }

 private:
  enum class state : std::uint8_t { open, returned_open, confirmed, returned, refused };
  void settle(std::size_t index, bool positive);

  std::uint64_t first_;
  std::vector<state> states_;
  std::size_t open_from_ = 0;  // all before it have an answer
};

// Once a message is not confirmed, no later one of its topic and key is: whoever sends again would put it
// before the earlier one.
void hold_back_later_ones(std::span<const message> batch, std::vector<publish_result>& results);

}  // namespace settle::inline v0::rabbitmq

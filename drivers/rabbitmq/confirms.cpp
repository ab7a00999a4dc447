#include "rabbitmq/confirms.hpp"

#include <set>
#include <string_view>
#include <utility>

namespace settle::inline v0::rabbitmq {

void confirms::settle(std::size_t index, bool positive) {
  auto& one = states_[index];
  if (one == state::open)
    one = positive ? state::confirmed : state::refused;
  else if (one == state::returned_open)
    one = state::returned;
}

// Numbers of earlier batches come late, after a batch that was given up, and mean nothing here.
void confirms::take(const confirmation& said) {
  if (said.number < first_) return;
  const auto index = said.number - first_;
  if (index >= states_.size()) return;
  if (said.and_all_before)
    for (auto i = open_from_; i < index; ++i) settle(i, said.positive);
  settle(index, said.positive);
  while (open_from_ < states_.size() && states_[open_from_] != state::open &&
         states_[open_from_] != state::returned_open)
    ++open_from_;
}

void confirms::take_return(std::uint64_t number) {
  if (number < first_ || number - first_ >= states_.size()) return;
  if (auto& one = states_[number - first_]; one == state::open) one = state::returned_open;
}

void hold_back_later_ones(std::span<const message> batch, std::vector<publish_result>& results) {
  std::set<std::pair<std::string_view, std::string_view>> held;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& one = batch[i];
    if (one.key.empty()) continue;
    if (results[i].status != publish_status::confirmed)
      held.emplace(one.topic, one.key);
    else if (held.contains({one.topic, one.key}))
      results[i] = {publish_status::destination_failed, "an earlier message of its key was not confirmed"};
  }
}

}  // namespace settle::inline v0::rabbitmq

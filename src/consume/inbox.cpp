#include "consume/inbox.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace settle::consume {

bool same_key(const message& a, const message& b) {
  return !a.key.empty() && a.key == b.key && a.topic == b.topic;
}

void inbox::add(std::vector<delivery> arrived) {
  for (auto& one : arrived) messages_.emplace_back(std::move(one));
}

void inbox::revoke(std::span<const std::uint32_t> partitions) {
  if (partitions.empty()) return;
  std::erase_if(messages_, [&](const work& one) {
    return std::ranges::find(partitions, one.content.tag.partition) != partitions.end();
  });
}

// A message with a charge does not run: the transaction only writes it down.
std::vector<work*> inbox::next_batch(std::size_t most, const predicate& alone) {
  std::vector<work*> batch;
  for (auto& one : messages_) {
    if (batch.size() >= most) break;
    const bool needs_all = !one.charge && alone(one.what());
    if (needs_all && !batch.empty()) break;
    batch.push_back(&one);
    if (needs_all) break;
  }
  return batch;
}

std::vector<work*> inbox::probe() {
  std::set<std::pair<std::string_view, std::string_view>> waiting;
  for (auto& one : messages_) {
    const auto& m = one.what();
    const bool first_of_key = m.key.empty() || waiting.emplace(m.topic, m.key).second;
    if (one.outages == 0 && first_of_key) return {&one};
  }
  if (messages_.empty()) return {};
  return {&messages_.front()};
}

// Nearly always the oldest are done, in order; only what is left after them needs a search.
void inbox::finished(std::span<work* const> done) {
  std::size_t taken = 0;
  for (; taken < done.size() && !messages_.empty() && done[taken] == &messages_.front(); ++taken)
    messages_.pop_front();
  const std::set<const work*> gone(done.begin() + static_cast<std::ptrdiff_t>(taken), done.end());
  if (!gone.empty()) std::erase_if(messages_, [&](const work& one) { return gone.contains(&one); });
}

}  // namespace settle::consume

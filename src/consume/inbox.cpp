#include "consume/inbox.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace settle::consume {
namespace {

constexpr duration put_off_max = std::chrono::minutes(1);

}  // namespace

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

void inbox::put_off(std::span<work* const> messages, timestamp until) {
  for (auto* one : messages) one->not_before = until;
  put_off_until_ = std::max(put_off_until_, until);
}

// Nearly always all of them. A clock that was set back must not put them off for longer.
void inbox::for_ready(timestamp now, const std::function<bool(work&)>& each) {
  const bool some_wait = now < put_off_until_ && put_off_until_ - now <= put_off_max;
  std::set<key_view> waiting;
  for (auto& one : messages_) {
    const auto& m = one.what();
    if (some_wait && one.not_before > now) waiting.emplace(m.topic, m.key);
    if (!waiting.empty() && waiting.contains({m.topic, m.key})) continue;
    if (!each(one)) return;
  }
}

std::size_t inbox::ready(timestamp now) {
  if (now >= put_off_until_) return messages_.size();
  std::size_t count = 0;
  for_ready(now, [&](work&) { return ++count > 0; });
  return count;
}

// A message with a charge does not run: the transaction only writes it down.
std::vector<work*> inbox::next_batch(std::size_t most, const predicate& alone, timestamp now) {
  std::vector<work*> batch;
  for_ready(now, [&](work& one) {
    if (batch.size() >= most) return false;
    const bool needs_all = !one.charge && alone(one.what());
    if (needs_all && !batch.empty()) return false;
    batch.push_back(&one);
    return !needs_all;
  });
  return batch;
}

work* inbox::untried(timestamp now) {
  std::set<key_view> tried;
  work* found = nullptr;
  for_ready(now, [&](work& one) {
    const auto& m = one.what();
    const bool first_of_key = m.key.empty() || tried.emplace(m.topic, m.key).second;
    if (one.outages.times == 0 && first_of_key) found = &one;
    return found == nullptr;
  });
  return found;
}

std::vector<work*> inbox::probe(timestamp now) {
  if (auto* const fresh = untried(now); fresh != nullptr) return {fresh};
  return next_batch(1, [](const message&) { return true; }, now);
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

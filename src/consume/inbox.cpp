#include "consume/inbox.hpp"

#include <algorithm>
#include <set>
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
  std::erase_if(messages_, [&](const held_message& one) {
    const bool gone = std::ranges::find(partitions, one.content.tag.partition) != partitions.end();
    if (gone && one.failures > 0) --waiting_;
    return gone;
  });
}

std::vector<held_message*> inbox::next_batch(std::size_t most, timestamp now) {
  using key_view = std::pair<std::string_view, std::string_view>;
  std::set<key_view> blocked;
  std::vector<held_message*> batch;
  for (auto& one : messages_) {
    if (batch.size() >= most) break;
    const auto& m = one.content.content;
    const key_view key{m.topic, m.key};
    if (!m.key.empty() && blocked.contains(key)) continue;
    if (one.failures == 0) {
      batch.push_back(&one);
      continue;
    }
    if (one.retry_at <= now) {
      if (batch.empty()) return {&one};
      break;  // the messages before it first; it is the first of a later batch
    }
    if (!m.key.empty()) blocked.insert(key);
  }
  return batch;
}

// Nearly always the oldest are done, in order; only what is left after them needs a search.
void inbox::finished(std::span<held_message* const> done) {
  for (auto* one : done) succeeded(*one);
  std::size_t taken = 0;
  for (; taken < done.size() && !messages_.empty() && done[taken] == &messages_.front(); ++taken)
    messages_.pop_front();
  const std::set<const held_message*> gone(done.begin() + static_cast<std::ptrdiff_t>(taken), done.end());
  if (!gone.empty()) std::erase_if(messages_, [&](const held_message& one) { return gone.contains(&one); });
}

void inbox::failed(held_message& one, timestamp retry_at) {
  if (one.failures++ == 0) ++waiting_;
  one.retry_at = retry_at;
}

void inbox::succeeded(held_message& one) {
  if (one.failures > 0) --waiting_;
  one.failures = 0;
}

timestamp inbox::next_retry(timestamp otherwise) const {
  if (waiting_ == 0) return otherwise;
  timestamp earliest = otherwise;
  for (const auto& one : messages_)
    if (one.failures > 0) earliest = std::min(earliest, one.retry_at);
  return earliest;
}

}  // namespace settle::consume

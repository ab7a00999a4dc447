#include "consume/splitter.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace settle::consume {
namespace {

constexpr int apart_max = 4;  // messages that are tried apart, before a batch is cut into pieces

}  // namespace

void splitter::apply(batch messages, int left_out) {
  if (messages.empty() || !host_.may_try()) return;
  const auto why = host_.attempt(messages);
  if (!why) return;
  if (!why->put_off.empty()) {
    host_.keys_held_elsewhere();
    std::vector<work*> rest;
    std::ranges::copy_if(messages, std::back_inserter(rest), [&](const work* one) {
      return std::ranges::find(why->put_off, one) == why->put_off.end();
    });
    apply(rest, left_out);
  } else if (!why->alone.empty())
    apply_left_out(messages, *why, left_out);
  else if (messages.size() == 1)
    host_.failed_alone(*messages[0], why->how);
  else
    apply_split(messages, *why, left_out);
}

// The rest is one transaction again, because commits cost most: first what need not wait for the message,
// then the message, then the later ones of its key. A batch with many bad ones is cut in pieces instead, so
// that its good ones do not run once for each of them; so is one in an outage, where nothing else would get
// through either.
void splitter::apply_split(batch messages, const failure& why, int left_out) {
  const auto apply_unless_behind = [&](batch part) { apply(not_behind(messages, part), left_out); };
  if (!why.at) {  // COMMIT, or a handler of several, did not say which message it minded
    apply(messages.first(messages.size() / 2), left_out);
    apply_unless_behind(messages.subspan(messages.size() / 2));
    return;
  }
  const auto before = messages.first(*why.at);
  const auto after = messages.subspan(*why.at + 1);
  if (left_out >= apart_max || why.several || why.how.why == failure_class::outage) {
    apply(before, left_out);
    apply_unless_behind(messages.subspan(*why.at, 1));
    apply_unless_behind(after);
    return;
  }
  std::vector<work*> rest(before.begin(), before.end());
  std::vector<work*> waiting;
  for (auto* one : after) (same_key(messages[*why.at]->what(), one->what()) ? waiting : rest).push_back(one);
  apply(rest, left_out + 1);
  apply_unless_behind(messages.subspan(*why.at, 1));
  apply_unless_behind(waiting);
}

void splitter::apply_left_out(batch messages, const failure& why, int left_out) {
  for (auto* one : why.alone) apply(not_behind(messages, {&one, 1}), left_out);
  apply(not_behind(messages, why.behind), left_out + static_cast<int>(why.alone.size()));
}

// Those of a part, which is in the order of its batch, that no message before them of their key is left out
// for. What goes along with them is not left out.
std::vector<work*> splitter::not_behind(batch messages, batch part) const {
  std::vector<work*> free;
  std::set<key_view> held;
  auto next = part.begin();
  for (auto* one : messages) {
    const bool asked = next != part.end() && *next == one;
    if (asked) ++next;
    const key_view key(one->what().topic, one->what().key);
    if (asked && !held.contains(key))
      free.push_back(one);
    else if (!one->what().key.empty() && !host_.is_done(*one))
      held.insert(key);
  }
  return free;
}

}  // namespace settle::consume

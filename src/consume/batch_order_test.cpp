// Random batches through everything that decides about a batch: the inbox, the plan, the handlers' run and
// the splitter. The database is a model of a few lines that can be copied and put back, so thousands of cases
// take a second. However handlers, commits and deliveries fail: every message is settled once, and of a key
// in order.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <sstream>

#include "consume/handler_run.hpp"
#include "consume/inbox.hpp"
#include "consume/splitter.hpp"
#include "settle/testing.hpp"

namespace settle::consume {
namespace {

using testing::seeded_random;

struct store_unavailable {};  // a failure cannot be written down

// What the consumer's database holds.
struct model_store {
  std::set<std::string> claims;
  std::map<std::string, std::deque<std::string>> parked;  // by key, in order
  std::set<std::string> blocked;                          // keys that wait for an operator
  std::vector<std::string> settled;                       // applied or given up, in the order of the commits
};

struct appetite {
  std::uint64_t fails_early, fails_late, is_away, gives_up, commit_fails, held_elsewhere, redelivered;
};

appetite choose(seeded_random& random) {
  const auto rate = [&] { return random.below(2) == 0 ? 0 : random.below(40); };
  return {rate(), rate(), rate() / 4, rate(), rate() / 2, rate() / 4, rate()};
}

class world final : public attempt_host {
 public:
  explicit world(std::uint64_t seed)
      : random_(seed),
        wants_(choose(random_)),
        options_{
            .name = "c",
            .on_exhausted = random_.below(2) == 0 ? on_exhausted::continue_key : on_exhausted::block_key},
        can_go_back_(random_.below(3) > 0),
        groups_(random_.below(4) == 0) {
    const auto count = 2 + random_.below(14);
    const auto keys = 1 + random_.below(4);
    for (std::uint64_t n = 0; n < count; ++n) {
      const auto key =
          random_.below(8) == 0 ? std::string() : std::string(1, 'A' + char(random_.below(keys)));
      all_.push_back({"m" + std::to_string(n), key});
    }
  }

  void run() {
    for (int round = 0; round < rounds_max && !is_over(); ++round) {
      if (round == calm_after) wants_ = {};
      if (chance(wants_.redelivered) || inbox_.size() == 0) deliver();
      const auto most = 1 + random_.below(8);
      done_.clear();
      try {
        splitter(*this).apply(inbox_.next_batch(most, [](const message&) { return false; }, now()));
      } catch (const store_unavailable&) {  // the end of the round, as in the engine
      }
      inbox_.finished(std::exchange(done_, {}));
      retry_parked();
      ++time_;
    }
  }

  // What is wrong with the end of it; empty: nothing.
  std::string complaint() const {
    std::map<std::string, std::vector<std::string>> expected, found;
    std::map<std::string, std::string> key_of;
    for (const auto& one : all_) {
      key_of[one.id] = one.key.empty() ? one.id : one.key;
      expected[key_of[one.id]].push_back(one.id);
    }
    for (const auto& id : store_.settled) found[key_of.at(id)].push_back(id);
    std::ostringstream wrong;
    for (const auto& [key, ids] : expected)
      if (found[key] != (store_.blocked.contains(key) ? up_to_the_last_settled(key, ids) : ids)) {
        wrong << "key " << key << ":";
        for (const auto& id : found[key]) wrong << " " << id;
        wrong << " instead of";
        for (const auto& id : ids) wrong << " " << id;
        wrong << (store_.blocked.contains(key) ? " (blocked)\n" : "\n");
      }
    return wrong.str();
  }

  bool had_failures() const { return failures_ > 0; }
  bool left_some_out() const { return left_out_ > 0; }

  // attempt_host
  std::optional<failure> attempt(batch messages) override;
  bool may_try() const override { return true; }
  bool is_done(const work& one) const override { return std::ranges::find(done_, &one) != done_.end(); }
  void failed_alone(work& one, const failed_attempt& how) override {
    if (one.charge) throw store_unavailable();
    if (how.why != failure_class::outage) one.charge = how;
  }
  void keys_held_elsewhere() override {}

 private:
  static constexpr int rounds_max = 400;
  static constexpr int calm_after = 100;

  struct sent {
    std::string id, key;
  };
  class open_batch;

  timestamp now() const { return timestamp(std::chrono::seconds(time_)); }
  bool chance(std::uint64_t in_a_hundred) { return random_.below(100) < in_a_hundred; }

  // Of a blocked key everything up to the message that blocks it is settled, and the rest is parked in order.
  std::vector<std::string> up_to_the_last_settled(const std::string& key,
                                                  const std::vector<std::string>& ids) const {
    auto expected = ids;
    const auto waiting = store_.parked.find(key);
    const auto parked = waiting == store_.parked.end() ? std::deque<std::string>() : waiting->second;
    if (parked.size() > expected.size()) return {};
    if (!std::ranges::equal(parked, std::span(expected).last(parked.size()))) return {};
    expected.resize(expected.size() - parked.size());
    return expected;
  }

  bool is_over() const {
    for (const auto& [key, waiting] : store_.parked)
      if (!waiting.empty() && !store_.blocked.contains(key)) return false;
    return std::ranges::all_of(all_, [&](const sent& one) { return store_.claims.contains(one.id); });
  }

  // Everything from an arbitrary place on, once more: what is not claimed yet must be among it.
  void deliver() {
    inbox_.clear();
    std::size_t first = all_.size();
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (!store_.claims.contains(all_[i].id)) first = std::min(first, i);
    first = random_.below(first + 1);
    std::vector<delivery> arrived;
    for (auto i = first; i < all_.size(); ++i) {
      delivery one;
      one.content.id = all_[i].id;
      one.content.key = all_[i].key;
      one.content.topic = "orders";
      arrived.push_back(one);
      if (random_.below(10) == 0 && all_[i].key.empty()) arrived.push_back(one);
    }
    inbox_.add(std::move(arrived));
  }

  failed_attempt failed(failure_class otherwise) {
    ++failures_;
    return {now(), chance(wants_.gives_up) ? failure_class::permanent : otherwise, "no"};
  }

  void write_down(model_store& in, const work& one, verdict as) {
    const auto& m = one.what();
    const auto key = m.key.empty() ? m.id : m.key;
    switch (as) {
      case verdict::run:
        in.settled.push_back(m.id);
        break;
      case verdict::charge:
        if (!one.given_up()) {
          in.parked[key].push_back(m.id);
          break;
        }
        in.settled.push_back(m.id);
        if (holds_its_key(one, as, options_)) in.blocked.insert(key);
        break;
      case verdict::behind:
        in.parked[key].push_back(m.id);
        break;
      case verdict::left_out:
        in.claims.erase(m.id);
        ++left_out_;
        break;
      default:
        break;
    }
  }

  // One of each key, as it would run alone.
  void retry_parked() {
    for (auto& [key, waiting] : store_.parked) {
      if (waiting.empty() || store_.blocked.contains(key) || chance(wants_.fails_late)) continue;
      store_.settled.push_back(waiting.front());
      waiting.pop_front();
    }
  }

  seeded_random random_;
  appetite wants_;
  consumer_options options_;
  bool can_go_back_;  // as on SQLite
  bool groups_;       // handlers take several messages at once
  std::vector<sent> all_;
  model_store store_;
  inbox inbox_;
  std::vector<work*> done_;
  std::int64_t time_ = 1;
  int failures_ = 0;
  int left_out_ = 0;
};

class world::open_batch final : public handler_host {
 public:
  open_batch(world& in, batch messages, const plan& of) : in_(in), messages_(messages), of_(of) {}

  std::size_t together(std::size_t at) const override {
    auto next = at + 1;
    while (in_.groups_ && next < messages_.size() && of_.what[next] == verdict::run) ++next;
    return next - at;
  }
  std::optional<failed_attempt> run(std::size_t, std::size_t count) override {
    early_ = count == 1 && in_.chance(in_.wants_.fails_early);
    if (early_) return in_.failed(failure_class::poison);
    if (in_.chance(in_.wants_.is_away)) return failed_attempt{in_.now(), failure_class::outage, "away"};
    if (in_.chance(in_.wants_.fails_late)) return in_.failed(failure_class::poison);
    return std::nullopt;
  }
  bool charge_at_once(std::size_t at, const failed_attempt& how) override {
    if (!early_) return false;
    in_.failed_alone(*messages_[at], how);
    return true;
  }
  bool go_back() override { return in_.can_go_back_; }

 private:
  world& in_;
  batch messages_;
  const plan& of_;
  bool early_ = false;
};

std::optional<failure> world::attempt(batch messages) {
  auto changed = store_;
  plan todo;
  todo.what.assign(messages.size(), verdict::duplicate);
  std::vector<std::size_t> fresh;
  facts known;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& m = messages[i]->what();
    if (!m.key.empty() && chance(wants_.held_elsewhere)) {  // with all of its key
      failure put_off;
      for (auto* one : messages)
        if (same_key(one->what(), m)) put_off.put_off.push_back(one);
      return put_off;
    }
    const auto waiting = store_.parked.find(m.key);
    if (!m.key.empty() &&
        (store_.blocked.contains(m.key) || (waiting != store_.parked.end() && !waiting->second.empty())))
      known.waiting.emplace(m.topic, m.key);
    if (!changed.claims.insert(m.id).second) continue;
    todo.what[i] = verdict::run;
    fresh.push_back(i);
  }
  known.beyond.assign(fresh.size(), false);
  const judging by{options_, now()};
  todo.judge_fresh(messages, fresh, known, by);
  open_batch opened(*this, messages, todo);
  if (auto why = run_handlers(messages, todo, opened, by)) return why;
  if (chance(wants_.commit_fails)) return failure{std::nullopt, failed(failure_class::transient)};
  for (std::size_t i = 0; i < messages.size(); ++i) write_down(changed, *messages[i], todo.what[i]);
  store_ = std::move(changed);
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (todo.what[i] != verdict::left_out) done_.push_back(messages[i]);
  return todo.left_out_of(messages);
}

// Proves O4, C1, C8
TEST(random_batches, settle_every_message_once_and_in_the_order_of_its_key) {
  constexpr std::uint64_t cases = 20'000;
  int failing = 0, leaving_out = 0;
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    world one(seed);
    one.run();
    ASSERT_EQ(one.complaint(), "") << "seed " << seed;
    failing += one.had_failures() ? 1 : 0;
    leaving_out += one.left_some_out() ? 1 : 0;
  }
  EXPECT_GT(failing, 10'000);
  EXPECT_GT(leaving_out, 1'000) << "messages that leave their batch were not tried";
}

}  // namespace
}  // namespace settle::consume

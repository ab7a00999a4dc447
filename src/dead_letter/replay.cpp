// Replaying: in batches that grow, each sent when the one before has ended.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/pause.hpp"
#include "dead_letter/find.hpp"
#include "dead_letter/rate_limiter.hpp"
#include "dead_letter/row.hpp"
#include "dead_letter/shared.hpp"
#include "outbox/shared.hpp"
#include "queries/dead_letter.hpp"
#include "settle/dead_letter.hpp"
#include "settle/error.hpp"
#include "settle/publish.hpp"

namespace settle::inline v0 {
namespace dlq {
namespace {

constexpr std::int64_t batch_max = 1000;  // their payloads are in memory together

void check(const dead_letter_filter& which, const replay_options& options) {
  const auto refuse = [](const char* why) { throw error(errc::invalid_argument, why); };
  if (which.status && *which.status != dead_letter_status::fresh &&
      *which.status != dead_letter_status::replaying)
    refuse("only letters that are NEW or REPLAYING can be replayed: the others have run, or were discarded");
  const auto fits = [](std::int64_t size) { return size >= 1 && size <= batch_max; };
  if (options.batches.empty() || !std::ranges::all_of(options.batches, fits))
    refuse("replay_options.batches must be sizes of 1 to 1,000");
  if (!(options.rate_max >= 0) || std::isinf(options.rate_max))
    refuse("replay_options.rate_max must not be negative");
  if (!(options.failures_max >= 0 && options.failures_max <= 1))
    refuse("replay_options.failures_max is a part: 0 to 1");
  if (options.wait_max < duration::zero() || options.poll <= duration::zero())
    refuse("replay_options: wait_max must not be negative, and poll must be positive");
}

message addressed(const dead_letter& of) {
  auto m = as_published(of.what);
  m.extensions["settlereplayfor"] = of.consumer;
  m.extensions["settlereplayof"] = to_text({of.id, of.replays});
  return m;
}

// What came from another broker may have names that cannot be published here. The consumer takes everything
// from its row anyway, so that the bare address will do.
void send(transaction& tx, const dead_letter& of) {
  const auto whole = addressed(of);
  try {
    republish(tx, whole);
  } catch (const error& e) {
    if (e.code() != errc::invalid_name) throw;
    message bare;
    bare.id = whole.id;
    bare.topic = whole.topic;
    bare.type = "settle.replay";
    for (const auto* name : {"settlereplayfor", "settlereplayof"})
      bare.extensions[name] = whole.extensions.at(name);
    republish(tx, bare);
  }
}

class replayer {
 public:
  replayer(database& db, const dead_letter_filter& which, const replay_options& options,
           const std::stop_token& stop, const std::function<void(const replay_progress&)>& progress)
      : db_(db),
        options_(options),
        stop_(stop),
        progress_(progress),
        from_(which.status.value_or(dead_letter_status::fresh)),
        // Those that are REPLAYING may still be under way.
        search_(search::to_replay(
            which, from_, from_ == dead_letter_status::fresh ? timestamp::max() : now() - options.wait_max)),
        limiter_(options.rate_max) {}

  replay_outcome run() {
    measure();
    std::optional<replay_end> end;
    for (std::size_t round = 0; !end && !stop_.stop_requested(); ++round) end = run_batch(batch_size(round));
    return {end.value_or(replay_end::stopped), counts_};
  }

 private:
  struct state {
    std::optional<dead_letter_status> status;
    std::int64_t replays = 0;
  };

  timestamp now() const { return db_.env().now(); }

  void measure() {
    auto tx = db_.read();
    const auto found = search_.measure(tx);
    counts_.matching = found.count;
    range_.upto = found.highest;
  }

  std::size_t batch_size(std::size_t round) const {
    const auto size = options_.batches[std::min(round, options_.batches.size() - 1)];
    return static_cast<std::size_t>(std::min(size, limiter_.at_once_max()));
  }

  // Nothing: there may be more to do.
  std::optional<replay_end> run_batch(std::size_t size) {
    if (counts_.sent < counts_.matching) await_rate(static_cast<std::int64_t>(size));
    if (stop_.stop_requested()) return replay_end::stopped;
    try {
      if (!send_batch(size)) return replay_end::done;
    } catch (const error& e) {
      if (e.code() != errc::cancelled || !stop_.stop_requested()) throw;
      return replay_end::stopped;
    }
    return await_batch();
  }

  // False: there are no more. Ids only go up, so that one that fails again is not met again.
  bool send_batch(std::size_t size) {
    batch_.clear();
    while (batch_.empty()) {
      auto tx = db_.begin(stop_);
      const auto ids = search_.find(tx, range_, size);
      if (ids.empty()) return false;
      range_.after = ids.back();
      auto rows = tx.execute(queries::dead_letter::send_letters, {json_ids(ids), to_string(from_), now()});
      std::vector<dead_letter> letters;
      for (std::size_t i = 0; i < rows.size(); ++i) letters.push_back(read_letter(rows, i));
      std::ranges::sort(letters, {}, &dead_letter::id);
      for (const auto& one : letters) {
        send(tx, one);
        batch_.push_back({one.id, one.replays});
      }
      tx.commit("dead_letter.replay");
    }
    sent_at_ = now();
    limiter_.note(sent_at_, static_cast<std::int64_t>(batch_.size()));
    before_ = counts_;
    counts_.sent += static_cast<std::int64_t>(batch_.size());
    counts_.waiting = static_cast<std::int64_t>(batch_.size());
    if (progress_) progress_(counts_);
    return true;
  }

  // Nothing: it has ended, and well enough to go on.
  std::optional<replay_end> await_batch() {
    std::vector<std::int64_t> ids;
    for (const auto& one : batch_) ids.push_back(one.letter);
    const auto names = json_ids(ids);
    look(names);
    while (counts_.waiting > 0 && !stop_.stop_requested() && now() - sent_at_ < options_.wait_max) {
      pause(options_.poll, stop_);
      look(names);
    }
    const auto failed = counts_.failed_again - before_.failed_again;
    if (static_cast<double>(failed) > options_.failures_max * static_cast<double>(batch_.size()))
      return replay_end::too_many_failures;
    if (counts_.waiting == 0) return std::nullopt;
    return stop_.stop_requested() ? replay_end::stopped : replay_end::timed_out;
  }

  void look(const std::string& ids) {
    const auto rows = db_.read().execute(queries::dead_letter::read_letter_states, {ids});
    namespace columns = queries::dead_letter::read_letter_states_columns;
    std::map<std::int64_t, state> now_is;
    for (std::size_t i = 0; i < rows.size(); ++i)
      now_is[rows[i][columns::id].integer()] = {dead_letter_status_from(rows[i][columns::status].text()),
                                                rows[i][columns::replays].integer()};
    counts_.ran = before_.ran;
    counts_.failed_again = before_.failed_again;
    counts_.waiting = 0;
    for (const auto& one : batch_) {
      const auto found = now_is.find(one.letter);
      ++(found == now_is.end() ? counts_.ran : count_of(one, found->second));
    }
    if (progress_) progress_(counts_);
  }

  // One that somebody has asked for once more had failed, or he did not want to wait for it any longer.
  std::int64_t& count_of(const replay_mark& one, const state& now_is) {
    if (now_is.status == dead_letter_status::replayed) return counts_.ran;
    const bool ours = now_is.replays == one.replays;
    return ours && now_is.status == dead_letter_status::replaying ? counts_.waiting : counts_.failed_again;
  }

  void await_rate(std::int64_t size) {
    for (auto wait = limiter_.wait(now(), size); wait > duration::zero() && !stop_.stop_requested();
         wait = limiter_.wait(now(), size)) {
      pause(std::min(options_.poll, wait), stop_);
      if (progress_) progress_(counts_);
    }
  }

  database& db_;
  replay_options options_;
  std::stop_token stop_;
  std::function<void(const replay_progress&)> progress_;
  dead_letter_status from_;
  search search_;
  rate_limiter limiter_;
  id_range range_;
  std::vector<replay_mark> batch_;
  timestamp sent_at_{};
  replay_progress counts_;
  replay_progress before_;  // without this batch
};

}  // namespace
}  // namespace dlq

replay_outcome replay(database& db, const dead_letter_filter& which, const replay_options& options,
                      std::stop_token stop, const std::function<void(const replay_progress&)>& progress) {
  dlq::check(which, options);
  return dlq::replayer(db, which, options, stop, progress).run();
}

}  // namespace settle::inline v0

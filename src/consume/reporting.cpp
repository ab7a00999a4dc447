#include "consume/reporting.hpp"

#include <utility>

#include "base/if_possible.hpp"
#include "dead_letter/shared.hpp"
#include "settle/metrics.hpp"

namespace settle::consume {
namespace {

constexpr std::int64_t lines_per_second = 100;  // of one event

std::string count_text(std::int64_t number) { return std::to_string(number); }
std::string milliseconds(duration of) { return std::to_string(of / std::chrono::milliseconds(1)); }

}  // namespace

void reporting::count(std::string_view metric, counter which, std::int64_t by) {
  if (by == 0) return;
  if (!metric.empty()) env_.counters->add(metric, {{"consumer", consumer_}}, by);
  const std::scoped_lock lock(counts_mutex_);
  counts_.*which += by;
}

consumer_counts reporting::counts() const {
  const std::scoped_lock lock(counts_mutex_);
  return counts_;
}

// Lines about single messages: there may be a great many of them.
bool reporting::may_log(log_level level, std::string_view event) {
  if (!env_.log->enabled(level)) return false;
  const auto left_out = log_limits_.try_emplace(event, lines_per_second).first->second.ask(env_.now());
  if (left_out.value_or(0) > 0)
    env_.log->write(
        level, "lines_left_out",
        {{"consumer", consumer_}, {"event", std::string(event)}, {"lines", count_text(*left_out)}});
  return left_out.has_value();
}

void reporting::applied(const std::map<verdict, std::int64_t>& of_each_kind, std::int64_t given_up) {
  const auto number = [&](verdict kind) {
    const auto found = of_each_kind.find(kind);
    return found == of_each_kind.end() ? 0 : found->second;
  };
  const auto ran = number(verdict::run) + number(verdict::replay);
  const auto parked =
      number(verdict::behind) + number(verdict::cautious) + number(verdict::charge) - given_up;
  count("settle_consumer_applied_total", &consumer_counts::applied, ran);
  count("settle_consumer_duplicates_total", &consumer_counts::duplicates, number(verdict::duplicate));
  count("settle_consumer_beyond_horizon_total", &consumer_counts::beyond_horizon,
        number(verdict::beyond_horizon));
  count("settle_consumer_ignored_total", &consumer_counts::ignored, number(verdict::ignore));
  count("settle_consumer_parked_total", &consumer_counts::parked, parked);
  count("settle_consumer_replays_total", &consumer_counts::replays, number(verdict::replay));
  count("settle_consumer_others_replays_total", &consumer_counts::others_replays,
        number(verdict::others_replay));
}

void reporting::skipped(const message& m, verdict why) {
  const auto said = [&]() -> std::pair<log_level, std::string_view> {
    switch (why) {
      case verdict::duplicate:
        return {log_level::info, "duplicate_skipped"};
      case verdict::beyond_horizon:
        return {log_level::warning, "beyond_dedup_horizon"};
      case verdict::behind:
        return {log_level::info, "parked_behind"};
      case verdict::cautious:
        return {log_level::info, "parked_cautiously"};
      case verdict::replay:
        return {log_level::info, "replayed"};
      case verdict::others_replay:
        return {log_level::info, "replay_for_another"};
      default:
        return {log_level::debug, "settled"};
    }
  }();
  if (!may_log(said.first, said.second)) return;
  env_.log->write(said.first, said.second,
                  {{"consumer", consumer_}, {"message_id", m.id}, {"type", m.type}, {"key", m.key}});
}

void reporting::failed(const work& one, const failed_attempt& how) {
  count("settle_consumer_failures_total", &consumer_counts::failures, 1);
  const auto& m = one.what();
  if (!may_log(log_level::warning, "handler_failed")) return;
  env_.log->write(log_level::warning, "handler_failed",
                  {{"consumer", consumer_},
                   {"message_id", m.id},
                   {"topic", m.topic},
                   {"type", m.type},
                   {"key", m.key},
                   {"class", std::string(to_string(how.why))},
                   {"failures", count_text(one.parked ? one.parked->attempts + 1 : 1)},
                   {"error", how.error}});
}

void reporting::given_up(const std::vector<dead_letter>& letters) {
  count("", &consumer_counts::dead_letters, std::ssize(letters));
  for (const auto& one : letters) report_dead_letter(env_, one, may_log(log_level::error, "dead_lettered"));
}

void reporting::classify_failed(const message& m, std::string_view why) {
  if (!may_log(log_level::error, "classify_failed")) return;
  env_.log->write(log_level::error, "classify_failed",
                  {{"consumer", consumer_}, {"message_id", m.id}, {"error", std::string(why)}});
}

void reporting::unhandled(const message& parked) {
  if (!may_log(log_level::warning, "parked_without_handler")) return;
  env_.log->write(log_level::warning, "parked_without_handler",
                  {{"consumer", consumer_},
                   {"message_id", parked.id},
                   {"topic", parked.topic},
                   {"type", parked.type},
                   {"key", parked.key}});
}

// Said once, as for what its handlers need.
void reporting::paused(const error& why) {
  count("settle_consumer_pauses_total", &consumer_counts::pauses, 1);
  env_.log->write(log_level::error, "consumer_paused", {{"consumer", consumer_}, {"error", why.what()}});
}

void reporting::paused(const work& one, const failed_attempt& how, const retry::outage& by) {
  const bool begins = by.failures() == 1;
  if (begins) count("settle_consumer_pauses_total", &consumer_counts::pauses, 1);
  env_.log->write(begins ? log_level::error : log_level::info,
                  begins ? "consumer_paused" : "consumer_still_paused",
                  {{"consumer", consumer_},
                   {"message_id", one.what().id},
                   {"tries", count_text(by.failures())},
                   {"retry_in_ms", milliseconds(by.until() - env_.now())},
                   {"error", how.error}});
}

void reporting::resumed(duration after) const {
  env_.log->write(log_level::warning, "consumer_resumed",
                  {{"consumer", consumer_}, {"paused_ms", milliseconds(after)}});
}

void reporting::handler_is_late(duration limit) const {
  env_.counters->add("settle_consumer_handler_timeouts_total", {{"consumer", consumer_}});
  env_.log->write(log_level::error, "handler_too_slow",
                  {{"consumer", consumer_}, {"handler_timeout_ms", milliseconds(limit)}});
}

void reporting::careful_with(std::string_view partition, std::size_t messages) const {
  env_.log->write(log_level::warning, "cautious_mode",
                  {{"consumer", consumer_},
                   {"partition", std::string(partition)},
                   {"messages", std::to_string(messages)}});
}

void reporting::has_another_owner(std::string_view partition) const {
  env_.log->write(log_level::warning, "partition_has_another_owner",
                  {{"consumer", consumer_}, {"partition", std::string(partition)}});
}

void reporting::end_of_work_not_noted(std::string_view why) const noexcept {
  if_possible([&] {
    env_.log->write(log_level::warning, "end_of_work_not_noted",
                    {{"consumer", consumer_}, {"error", std::string(why)}});
  });
}

void reporting::acknowledge_failed(std::string_view why) const noexcept {
  if_possible([&] {
    env_.log->write(log_level::warning, "acknowledge_failed",
                    {{"consumer", consumer_}, {"error", std::string(why)}});
  });
}

}  // namespace settle::consume

#include "saga/reporting.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "settle/metrics.hpp"
#include "settle/publish.hpp"

namespace settle::sagas {

namespace {

constexpr duration body_held_max = std::chrono::milliseconds(50);

std::string milliseconds(duration of) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(of).count());
}

}  // namespace

// Counted here, added once per tick.
void reporting::tell(const instance& of, const std::string& step, std::string_view outcome,
                     std::optional<duration> took) {
  auto& one = told_[{of.what.type, step, outcome}];
  ++one.count;
  if (took) one.times.add(*took);
  if (!env_.log->enabled(log_level::debug)) return;
  env_.log->write(log_level::debug, "saga_step",
                  {{"host", host_},
                   {"saga", of.row.id.text()},
                   {"type", of.what.type},
                   {"step", step},
                   {"outcome", std::string(outcome)},
                   {"milliseconds", took ? milliseconds(*took) : ""}});
}

// Calls, commands and children are started by one row and end with another; local steps have one alone.
void reporting::tell_rows(const instance& of) {
  auto local = of.took.begin();
  for (auto i = of.rows_stored; i < of.rows.rows().size(); ++i) {
    const auto& row = of.rows.rows()[i];
    const auto since_opened = [&] { return row.at - of.rows.at(*row.of).at; };
    const auto in_handler = [&]() -> std::optional<duration> {
      local = std::find_if(local, of.took.end(), [&](const auto& one) { return one.first == row.name; });
      return local == of.took.end() ? std::nullopt : std::optional((local++)->second);
    };
    switch (row.kind) {
      case row_kind::done:
        tell(of, row.name, "done", in_handler());
        break;
      case row_kind::intent:
      case row_kind::child:
        tell(of, row.name, "started");
        break;
      case row_kind::outcome:
        tell(of, row.name, "done", since_opened());
        break;
      case row_kind::refused:
        tell(of, row.name, "refused", row.of ? since_opened() : in_handler());
        break;
      case row_kind::unknown:
        tell(of, row.name, "unknown", since_opened());
        break;
      case row_kind::undone:
        tell(of, row.name, "undone");
        break;
      case row_kind::held:
        if (!row.name.empty()) tell(of, row.name, "held");
        break;
      default:
        break;
    }
  }
  for (const auto& name : of.retried) tell(of, name, "retried");
}

void reporting::stranded(const std::vector<stranded_sagas>& all) {
  std::map<std::pair<std::string, std::string>, std::int64_t> now;
  for (const auto& one : all)
    if (one.host == host_) now[{one.type, std::to_string(one.version)}] = one.waiting;
  for (const auto& [kind, waiting] : now) {
    if (stranded_.contains(kind)) continue;
    env_.log->write(log_level::warning, "sagas_without_process",
                    {{"host", host_},
                     {"type", kind.first},
                     {"version", kind.second},
                     {"waiting", std::to_string(waiting)}});
  }
  auto changed = now;
  for (const auto& [kind, before] : stranded_) changed[kind] -= before;
  for (const auto& [kind, more] : changed)
    if (more != 0)
      env_.counters->add("settle_sagas_without_process",
                         {{"host", host_}, {"type", kind.first}, {"version", kind.second}}, more);
  stranded_ = std::move(now);
}

void reporting::went_on(const instance& of) {
  tell_rows(of);
  if (of.body_held > body_held_max) {
    env_.counters->add("settle_saga_slow_bodies_total", {{"host", host_}, {"type", of.what.type}});
    env_.log->write(log_level::warning, "saga_body_is_slow",
                    {{"host", host_},
                     {"saga", of.row.id.text()},
                     {"type", of.what.type},
                     {"after", of.body_held_after},
                     {"milliseconds", milliseconds(of.body_held)}});
  }
  {
    const std::scoped_lock lock(mutex_);
    counts_.steps += of.steps;
    counts_.undos += of.undos;
    counts_.replays += of.replays;
    counts_.held += of.held_now ? 1 : 0;
  }
  if (of.steps > 0)
    env_.counters->add("settle_saga_steps_total", {{"host", host_}, {"type", of.what.type}}, of.steps);
  if (of.undos > 0)
    env_.counters->add("settle_saga_undos_total", {{"host", host_}, {"type", of.what.type}}, of.undos);
  if (of.input_differs)
    env_.log->write(log_level::warning, "saga_input_differs",
                    {{"host", host_}, {"saga", of.row.id.text()}, {"type", of.what.type}});
  if (of.held_now)
    env_.log->write(log_level::error, "saga_held",
                    {{"host", host_},
                     {"saga", of.row.id.text()},
                     {"type", of.what.type},
                     {"entity", of.row.entity},
                     {"error", of.last_error}});
  if (has_ended(of.status)) ended(of);
}

void reporting::ended(const instance& of) {
  env_.counters->add("settle_sagas_ended_total",
                     {{"host", host_}, {"type", of.what.type}, {"status", to_string(of.status)}});
  const std::scoped_lock lock(mutex_);
  if (of.status == saga_status::completed) ++counts_.completed;
  if (of.status == saga_status::failed) ++counts_.failed;
  if (of.status == saga_status::compensated) ++counts_.compensated;
}

void reporting::tick_ended() {
  for (const auto& [what, one] : told_) {
    const auto& [type, step, outcome] = what;
    const metrics::labels labels{{"host", host_}, {"type", type}, {"step", step}, {"outcome", outcome}};
    env_.counters->add("settle_saga_step_outcomes_total", labels, one.count);
    if (one.times.count() > 0) env_.counters->add_times("settle_saga_step_seconds", labels, one.times);
  }
  told_.clear();
  const std::scoped_lock lock(mutex_);
  ++counts_.ticks;
}

void reporting::tick_failed(const std::string& why) const {
  env_.counters->add("settle_saga_ticks_failed_total", {{"host", host_}});
  env_.log->write(log_level::info, "saga_tick_failed", {{"host", host_}, {"error", why}});
}

void reporting::order_refused(const instance& of, const std::string& why) const {
  env_.log->write(log_level::warning, "saga_order_refused",
                  {{"host", host_}, {"saga", of.row.id.text()}, {"error", why}});
}

void reporting::round_failed(const std::string& why) const {
  env_.log->write(log_level::warning, "saga_round_failed", {{"host", host_}, {"error", why}});
}

saga_counts reporting::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void publish_alert(transaction& tx, const std::string& host, const instance& of) {
  publish(tx, event{.topic = "settle.sagas",
                    .type = "saga.held",
                    .key = of.row.id.text(),
                    .aggregate_type = "saga",
                    .payload = to_json({{"host", host},
                                        {"saga", of.row.id.text()},
                                        {"type", of.what.type},
                                        {"entity", of.row.entity},
                                        {"reason", of.last_error}})});
}

}  // namespace settle::sagas

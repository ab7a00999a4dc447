#include "saga/reporting.hpp"

#include "base/json.hpp"
#include "settle/metrics.hpp"
#include "settle/publish.hpp"

namespace settle::sagas {

void reporting::went_on(const instance& of) {
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

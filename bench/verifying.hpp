// What the benches of the checker share: a system that has done a million events, as its databases show it,
// and the time that it takes to verify it and to look at the end of its outbox.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "harness.hpp"
#include "settle/driver/broker.hpp"
#include "settle/sqlite.hpp"
#include "settle/verify.hpp"

namespace bench {

struct verified_system {
  std::int64_t events = 0;
  std::int64_t ticks = 0;  // and notes of progress
};

inline verified_system verified_size(const options& opts) {
  return opts.quick ? verified_system{2'000, 100} : verified_system{1'000'000, 50'000};
}

// As the databases write it from the same number: '00000000-0000-7000-8000-' and the number in hex.
inline std::string verified_event_id(std::int64_t number) {
  return fmt::format("00000000-0000-7000-8000-{:012x}", number);
}

// The embedded broker with a copy of every event, and a group that has acknowledged none.
inline std::unique_ptr<settle::broker> fill_verified_broker(const std::string& path, std::int64_t events) {
  {
    const auto broker = settle::sqlite::open_broker(path);
    broker->subscribe({"warehouse", {"orders"}})->leave();
    constexpr std::int64_t per_batch = 10'000;
    for (std::int64_t done = 0; done < events;) {
      std::vector<settle::message> batch;
      for (std::int64_t n = 0; n < per_batch && done < events; ++n) {
        settle::message one;
        one.id = verified_event_id(++done);
        one.type = "order.placed";
        one.topic = "orders";
        one.key = std::to_string(done % 1000);
        batch.push_back(std::move(one));
      }
      broker->publishing().publish(batch);
    }
  }
  return settle::sqlite::open_broker(path);
}

inline report verify_report_of(const std::string& name, const std::string& what, settle::database& service,
                               settle::broker& broker, const verified_system& size) {
  constexpr double seconds_max = 30;
  settle::verify_report found;
  const auto taken = measure(
      size.events, [&] { found = settle::verify({.services = {&service}, .broker = broker.inspection()}); });
  report r;
  r.name = name;
  r.what = fmt::format("{} of {} events, with {} ticks and notes of progress", what, size.events, size.ticks);
  r.unit = "s";
  r.lower_is_better = true;
  r.ours = taken.seconds;
  r.target = "clean in 30 s";
  r.reached = found.clean() && found.committed == size.events && taken.seconds <= seconds_max;
  r.counters = {{"events_per_second", taken.rate()}, {"cpu_seconds", taken.cpu_seconds}};
  return r;
}

inline report newest_report_of(const std::string& name, settle::database& service, const std::string& view,
                               const verified_system& size) {
  constexpr double ms_max = 10;
  std::vector<double> times;
  for (int i = 0; i < 21; ++i)
    times.push_back(
        measure(1, [&] { service.read().execute("select * from " + view + " order by id desc limit 20"); })
            .seconds *
        1000);
  report r;
  r.name = name;
  r.what = fmt::format("the newest twenty rows of {} of {} events, with {} ticks and notes of progress", view,
                       size.events, size.ticks);
  r.unit = "ms";
  r.lower_is_better = true;
  r.ours = percentile(times, 0.5);
  r.target = "10 ms";
  r.reached = r.ours <= ms_max;
  r.counters = {{"slowest_ms", percentile(times, 1)}};
  return r;
}

}  // namespace bench

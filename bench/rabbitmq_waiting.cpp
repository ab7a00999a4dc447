// A consumer in front of a million messages that wait at RabbitMQ: whether its memory is what it is in front
// of a few. Run by its name alone: bench_run rabbitmq_waiting.
#include <algorithm>

#include "consuming.hpp"
#include "memory_use.hpp"
#include "raw_postgres.hpp"
#include "raw_rabbitmq.hpp"
#include "service.hpp"
#include "settle/postgres.hpp"

namespace {

constexpr double larger_at_most = 1.1;
constexpr std::int64_t filled_at_once = 5000;

void fill(const bench::raw_group& to, std::int64_t messages) {
  bench::raw_rabbitmq line(to.url());
  for (std::int64_t done = 0; done < messages; done += filled_at_once) {
    std::vector<settle::message> some;
    for (std::int64_t n = done; n < std::min(messages, done + filled_at_once); ++n)
      some.push_back(bench::message_of(n));
    line.publish(to.exchange(), some, some.size());
  }
}

// The largest of many looks. A batch may end more than was asked for, so what is left is counted anew.
bench::memory_use largest_during(settle::consumer& what, std::int64_t messages) {
  bench::memory_use largest;
  const auto before = bench::ended(what);
  for (std::int64_t look = 1; look <= 20; ++look) {
    const auto left = before + messages * look / 20 - bench::ended(what);
    if (left > 0) bench::run_until_ended(what, left);
    const auto now = bench::memory_now();
    largest = {std::max(largest.rss, now.rss), std::max(largest.pss, now.pss)};
  }
  return largest;
}

std::vector<bench::report> run(const bench::options& opts, const std::string& rabbitmq,
                               const std::string& postgres) {
  const std::int64_t few = opts.quick ? 1'000 : 50'000;
  const std::int64_t many = opts.quick ? 5'000 : 1'000'000;
  const bench::scratch own(postgres, "rabbitmq_waiting");
  const bench::raw_group at(rabbitmq, "bench_waiting.");
  const auto broker = at.open();
  const auto db = settle::postgres::open(own.conninfo(), {.env = bench::without_log()});
  settle::consumer consumer(*db, *broker, {.name = bench::group});
  consumer.on(bench::topic, bench::type, [](const settle::message&, settle::transaction&) {});
  bench::drain(consumer);
  fill(at, few);
  const auto before = largest_during(consumer, few);
  fill(at, many);
  const auto after = largest_during(consumer, few);
  consumer.leave();
  bench::report r;
  r.name = "rabbitmq_waiting";
  r.what = "memory (Pss) of a consumer in front of a million messages; raw: of fifty thousand";
  r.unit = "KiB";
  r.lower_is_better = true;
  r.ours = after.pss;
  r.raw = before.pss;
  r.ratio = before.pss / after.pss;
  r.target = "<= 1.1 x raw";
  r.reached = after.pss <= larger_at_most * before.pss;
  r.counters = {
      {"waiting", static_cast<double>(many)}, {"rss_before_kib", before.rss}, {"rss_after_kib", after.rss}};
  return {r};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_rabbitmq(argc, argv, run); }

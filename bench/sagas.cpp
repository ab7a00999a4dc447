#include "sagas.hpp"

namespace bench {
namespace {

constexpr int steps_max = 1'000;
constexpr int part = 200;  // at the beginning and at the end

std::vector<clock::time_point> done_at;

const auto count = settle::local("count", [](settle::transaction& tx, const std::string& input) {
  post(tx, reserve_query, input);
  done_at.push_back(clock::now());
});

settle::flow<> count_all(settle::saga& saga, const std::string& input) {
  for (int i = 0; i < steps_max; ++i) co_await saga.run(count, input);
}

double seconds_between(int first, int last) {
  return std::chrono::duration<double>(done_at.at(static_cast<std::size_t>(last)) -
                                       done_at.at(static_cast<std::size_t>(first)))
      .count();
}

}  // namespace

report long_saga(const options& opts, settle::database& db, const std::string& name) {
  constexpr double target = 1.2;
  const settle::saga_type type("count_all", 1, count_all, {count});
  settle::saga_host host(db, {.name = name});
  host.add(type);
  std::vector<double> first, last;
  for (int turn = 0; turn < (opts.quick ? 1 : 15); ++turn) {
    done_at.clear();
    const auto goal = ended(host) + 1;
    const auto input = input_of(turn);
    host.start(type, order_of(input), input);
    while (ended(host) < goal) host.run_once();
    first.push_back(seconds_between(0, part) * 1e6 / part);
    last.push_back(seconds_between(steps_max - 1 - part, steps_max - 1) * 1e6 / part);
  }
  host.leave();
  report r;
  r.name = name;
  r.what = "a step at the end of a saga of 1,000 local steps; in place of raw: one at its beginning";
  r.unit = "us/step";
  r.lower_is_better = true;
  r.ours = percentile(last, 0.5);
  r.raw = percentile(first, 0.5);
  r.ratio = *r.raw / r.ours;
  r.target = "<= 1.2 x first";
  r.reached = r.ours <= *r.raw * target;
  return r;
}

}  // namespace bench

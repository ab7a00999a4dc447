#include "memory_use.hpp"
#include "sagas.hpp"

namespace bench {

struct paid {
  std::string order;
};

}  // namespace bench

template <>
struct settle::codec<bench::paid> {
  static constexpr std::string_view topic = "payments";
  static constexpr std::string_view type = "paid";
  static std::string key(const bench::paid& p) { return p.order; }
  static std::string encode(const bench::paid& p) { return p.order; }
  static bench::paid decode(std::string_view bytes) { return {std::string(bytes)}; }
};

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr double memory_target_mb = 100;
constexpr double idle_target_ms = 2;
constexpr double waking_target_ms = 20;
constexpr double ready_target_s = 5;

const auto ship = settle::local(
    "ship", [](settle::transaction& tx, const std::string& input) { post(tx, ship_query, input); });

settle::flow<> ship_when_paid(settle::saga& saga, const std::string& input) {
  const auto order = order_of(input);
  const auto payment = co_await saga.wait_for<paid>(order, 120h);
  if (payment) co_await saga.run(ship, input);
}

// A process at work; there is one at a time.
struct shipping {
  explicit shipping(std::unique_ptr<settle::database> of)
      : db(std::move(of)),
        type("ship_when_paid", 1, ship_when_paid, {ship}),
        host(*db, {.name = "shipping"}) {
    host.add(type).on<paid>([](const paid& p) { return p.order; });
  }
  ~shipping() { host.leave(); }
  shipping(const shipping&) = delete;
  shipping& operator=(const shipping&) = delete;

  void start(const std::string& order) { host.start(type, order, order + ' ' + payload()); }
  void drain() {
    while (host.run_once()) {
    }
  }

  std::unique_ptr<settle::database> db;
  settle::saga_type<std::string> type;
  settle::saga_host host;
};

template <class Work>
double milliseconds(const Work& work) {
  const auto began = clock::now();
  work();
  return std::chrono::duration<double, std::milli>(clock::now() - began).count();
}

double wake_one(shipping& of, const std::string& order) {
  return milliseconds([&] {
    auto tx = of.db->begin();
    of.host.deliver(tx, "paid-" + order, paid{order});
    tx.commit();
    for (const auto goal = ended(of.host) + 1; ended(of.host) < goal;) of.host.run_once();
  });
}

report below(const std::string& name, const std::string& what, const std::string& unit, double found,
             double target) {
  report r;
  r.name = name;
  r.what = what;
  r.unit = unit;
  r.lower_is_better = true;
  r.ours = found;
  r.target = "< " + std::to_string(static_cast<int>(target)) + " " + unit;
  r.reached = found < target;
  return r;
}

}  // namespace

std::vector<report> waiting_sagas(const options& opts, const std::string& name,
                                  const std::function<std::unique_ptr<settle::database>()>& open,
                                  const std::function<void(std::int64_t sagas)>& load) {
  const std::int64_t sagas = opts.quick ? 2'000 : 1'000'000;
  const int samples = opts.quick ? 5 : 200;
  {
    shipping first(open());
    first.start("order-0");
    first.drain();
  }
  load(sagas);
  // What was started before is in the way of nothing, and what is started now is to end at once.
  std::optional<shipping> host;
  const auto ready = milliseconds([&] {
    host.emplace(open());
    wake_one(*host, "order-0");
  });
  host->drain();
  std::vector<double> idle, waking;
  for (int i = 0; i < samples; ++i) idle.push_back(milliseconds([&] { host->host.run_once(); }));
  for (int i = 0; i < samples; ++i)
    waking.push_back(wake_one(*host, "order-" + std::to_string(1 + (i * 4'813LL) % sagas)));
  constexpr double kib_per_mb = 1024;
  auto memory = below(name + "_memory", "of the whole process, after waking some", "MB",
                      memory_now().rss / kib_per_mb, memory_target_mb);
  memory.counters = {{"waiting_sagas", static_cast<double>(sagas)}};
  auto tick = below(name + "_idle", "a look that finds nothing to do, p50", "ms", percentile(idle, 0.5),
                    idle_target_ms);
  tick.counters = {{"p99_ms", percentile(idle, 0.99)}};
  auto one = below(name + "_wake", "from an event to the end of the saga that waits for it, p50", "ms",
                   percentile(waking, 0.5), waking_target_ms);
  one.counters = {{"p99_ms", percentile(waking, 0.99)}};
  constexpr double ms_per_s = 1000;
  return {memory, tick, one,
          below(name + "_ready", "from opening the database to the end of a saga that is woken", "s",
                ready / ms_per_s, ready_target_s)};
}

}  // namespace bench

// What the benches of sagas share: an order of three local steps, the last of which can be refused, and the
// rows that it leaves, for those who write them by hand.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "settle/saga.hpp"
#include "workload.hpp"

namespace bench {

inline constexpr std::int64_t in_flight = 64;  // saga_host_options::batch_max

// The statements of the domain, the same on both databases.
inline constexpr const char* reserve_sql = "insert into stock_reservations (order_id) values ($1)";
inline constexpr const char* charge_sql = "insert into charges (order_id) values ($1)";
inline constexpr const char* ship_sql = "insert into shipments (order_id) values ($1)";
inline constexpr const char* release_sql = "insert into releases (order_id) values ($1)";
inline constexpr const char* refund_sql = "insert into refunds (order_id) values ($1)";
constexpr settle::query on_both(const char* name, const char* text) { return {name, text, text}; }
inline constexpr settle::query reserve_query = on_both("reserve", reserve_sql);
inline constexpr settle::query charge_query = on_both("charge", charge_sql);
inline constexpr settle::query ship_query = on_both("ship", ship_sql);
inline constexpr settle::query release_query = on_both("release", release_sql);
inline constexpr settle::query refund_query = on_both("refund", refund_sql);
inline constexpr const char* domain_tables[] = {"stock_reservations", "charges", "shipments", "releases",
                                                "refunds"};
inline constexpr const char* refused = "no lorry";

// The order's id is the first word of the saga's input.
inline std::string order_of(const std::string& input) { return input.substr(0, input.find(' ')); }

// Handlers post, so on PostgreSQL they cost no round trip of their own.
inline void post(settle::transaction& tx, const settle::query& sql, const std::string& input) {
  tx.post(sql, {order_of(input)});
}

// When the third step is refused: never, before it has written something, or after it has.
enum class refusal { none, early, late };

inline settle::saga_type<std::string> order_saga(const std::string& type, refusal third) {
  const auto reserve = settle::local("reserve", [](settle::transaction& tx, const std::string& input) {
                         post(tx, reserve_query, input);
                         return order_of(input);
                       }).undo([](settle::transaction& tx, const std::string& input, const std::string&) {
    post(tx, release_query, input);
  });
  const auto charge = settle::local("charge", [](settle::transaction& tx, const std::string& input) {
                        post(tx, charge_query, input);
                        return order_of(input);
                      }).undo([](settle::transaction& tx, const std::string& input, const std::string&) {
    post(tx, refund_query, input);
  });
  const auto ship = settle::local("ship", [third](settle::transaction& tx, const std::string& input) {
    if (third == refusal::early) throw settle::step_refused(refused);
    if (third == refusal::late) {
      tx.execute(ship_query, {order_of(input)});
      throw settle::step_refused(refused);
    }
    post(tx, ship_query, input);
    return order_of(input);
  });
  return settle::saga_of<std::string>(type, 1, reserve, charge, ship);
}

// A row of the journal, as somebody writes it who knows what comes. Empty texts are stored as null.
struct raw_journal_row {
  const char* n;
  const char* kind;  // as in src/saga/journal.hpp
  const char* name;
  bool with_input;
  bool with_hash;
  const char* result;  // null: the order
  const char* of;
};

inline const std::vector<raw_journal_row>& journal_of(refusal third) {
  static const std::vector<raw_journal_row> completed{{"1", "1", "reserve", true, true, nullptr, ""},
                                                      {"2", "1", "charge", true, true, nullptr, ""},
                                                      {"3", "1", "ship", false, true, nullptr, ""}};
  static const std::vector<raw_journal_row> undone{
      {"1", "1", "reserve", true, true, nullptr, ""}, {"2", "1", "charge", true, true, nullptr, ""},
      {"3", "2", "ship", false, true, refused, ""},   {"4", "12", "", false, false, refused, ""},
      {"5", "14", "charge", false, false, "", "2"},   {"6", "14", "reserve", false, false, "", "1"}};
  return third == refusal::none ? completed : undone;
}

inline std::string input_of(std::int64_t number) {
  return "order-" + std::to_string(number) + ' ' + payload();
}

// Numbers and ids by hand are spread as ours are, which are hashes, and as long.
inline constexpr std::int64_t raw_kind = 0x1e3779b97f4a7c15;
inline std::int64_t hash_of(std::int64_t number) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15U ^ 0x5bd1e995U);
}
inline std::string id_of(std::int64_t number) {
  char text[37];
  const auto mixed = static_cast<std::uint64_t>(hash_of(number));
  std::snprintf(text, sizeof text, "%08x-%04x-5%03x-8000-%012x", static_cast<unsigned>(mixed >> 32U),
                static_cast<unsigned>(mixed >> 16U & 0xffffU), static_cast<unsigned>(mixed & 0xfffU),
                static_cast<unsigned>(number));
  return text;
}

inline std::int64_t ended(const settle::saga_host& of) {
  const auto counts = of.counts();
  return counts.completed + counts.compensated + counts.failed;
}

// A host of one kind of order, to which 64 at a time are given.
class ordering {
 public:
  ordering(settle::database& db, const std::string& name, refusal third)
      : db_(db), type_(order_saga("place_order", third)), host_(db, {.name = name}) {
    host_.add(type_);
  }
  ~ordering() { host_.leave(); }
  ordering(const ordering&) = delete;
  ordering& operator=(const ordering&) = delete;

  slice measure(std::int64_t sagas) {
    return bench::measure(sagas, [&] {
      for (std::int64_t done = 0; done < sagas; done += in_flight) {
        start(in_flight);
        await(in_flight);
      }
    });
  }

  void start(std::int64_t sagas) {
    std::vector<settle::new_saga<std::string>> all;
    for (std::int64_t n = 0; n < sagas; ++n) {
      auto input = input_of(++started_);
      all.push_back({order_of(input), std::move(input)});
    }
    auto tx = db_.begin();
    host_.start_all(tx, type_, all);
    tx.commit();
  }

  void await(std::int64_t sagas) {
    goal_ += sagas;
    while (ended(host_) < goal_)
      if (!host_.run_once()) std::this_thread::sleep_for(host_.idle_wait());
  }

  settle::saga_host& host() { return host_; }

 private:
  settle::database& db_;
  settle::saga_type<std::string> type_;
  settle::saga_host host_;
  std::int64_t started_ = 0;
  std::int64_t goal_ = 0;
};

// Milliseconds from before a saga is started until it has ended, in a host that sleeps on its wake-ups.
inline double one_alone(ordering& of) {
  const auto before = ended(of.host());
  const auto began = clock::now();
  of.start(1);
  while (ended(of.host()) == before) std::this_thread::sleep_for(std::chrono::microseconds(20));
  return std::chrono::duration<double, std::milli>(clock::now() - began).count();
}

inline report alone_report(const std::string& name, const std::vector<double>& ours,
                           const std::vector<double>& raw) {
  constexpr double target_ms = 2;
  report r;
  r.name = name;
  r.what =
      "one saga of three steps on an idle system, from its start to its end, p50; raw: the same two commits";
  r.unit = "ms";
  r.lower_is_better = true;
  r.ours = percentile(ours, 0.5);
  r.raw = percentile(raw, 0.5);
  r.ratio = *r.raw / r.ours;
  r.target = "raw + 2 ms";
  r.reached = r.ours <= *r.raw + target_ms;
  r.counters = {{"samples", static_cast<double>(ours.size())}, {"p99_ms", percentile(ours, 0.99)}};
  return r;
}

inline report rate_report(const report& of, double target) {
  report r;
  r.name = of.name + "_rate";
  r.what = "the same without comparison, for machines of the class that the target was set on";
  r.unit = of.unit;
  r.ours = of.ours;
  r.target = ">= " + std::to_string(static_cast<int>(target));
  r.reached = r.ours >= target;
  return r;
}

// Sagas that fail are to reach half of those that do not, of the same run.
inline void must_reach_half_of(report& failing, const report& plain) {
  failing.target = ">= half of " + plain.name;
  failing.reached = failing.ours >= plain.ours / 2;
}

// A saga of very many steps: how long those at its end take, against those at its beginning.
report long_saga(const options& opts, settle::database& db, const std::string& name);

// A million sagas that wait for an event each: what the engine costs meanwhile, how fast one of them is
// woken, and how long it takes until a new process is at work. `load` copies the rows of the one that waits
// already.
std::vector<report> waiting_sagas(const options& opts, const std::string& name,
                                  const std::function<std::unique_ptr<settle::database>()>& open,
                                  const std::function<void(std::int64_t sagas)>& load);

}  // namespace bench

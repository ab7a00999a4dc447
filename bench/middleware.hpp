// What an Idempotency-Key adds to a request: one client asks for an order with a new key and without one, in
// turns with a bare commit of the same database.
#pragma once

#include <string>
#include <vector>

#include "harness.hpp"
#include "http_load.hpp"
#include "latencies.hpp"
#include "settle/http_once.hpp"
#include "settle/http_server.hpp"

namespace bench {

class middleware_shop {
 public:
  // The database has a table `orders (id, total_cents)`.
  explicit middleware_shop(settle::database& db) : db_(db), server_(routes(), {.worker_threads = 2}) {}

  report measure(const std::string& name, std::size_t count) {
    constexpr std::size_t not_counted = 20;
    std::vector<double> with_key, without, commits;
    for (std::size_t n = 0; n < count + not_counted; ++n) {
      const auto protected_ms = milliseconds([&] { keyed_.run(1); });
      const auto plain_ms = milliseconds([&] { plain_.run(1); });
      const auto commit_ms = milliseconds([&] { place_alone(); });
      if (n < not_counted) continue;
      with_key.push_back(protected_ms);
      without.push_back(plain_ms);
      commits.push_back(commit_ms);
    }
    const auto commit = percentile(commits, 0.5);
    report r;
    r.name = name;
    r.what =
        "p50 that an Idempotency-Key adds to a request of one insert, one client; raw: two such commits + "
        "0.3 ms";
    r.unit = "ms";
    r.lower_is_better = true;
    r.ours = percentile(with_key, 0.5) - percentile(without, 0.5);
    r.raw = 2 * commit + 0.3;
    r.ratio = *r.raw / r.ours;
    r.target = "<= 2 commits + 0.3 ms";
    r.reached = r.ours <= *r.raw;
    r.counters = {{"samples", static_cast<double>(count)},
                  {"with_key_p50_ms", percentile(with_key, 0.5)},
                  {"without_key_p50_ms", percentile(without, 0.5)},
                  {"with_key_p99_ms", percentile(with_key, 0.99)},
                  {"commit_p50_ms", commit}};
    return r;
  }

 private:
  static double milliseconds(const std::function<void()>& work) {
    const auto started = now_ns();
    work();
    return static_cast<double>(now_ns() - started) / 1e6;
  }

  settle::http::router routes() {
    settle::http::router made;
    const settle::http::idempotency policy{
        .service = "shop", .caller = [](const auto&) { return std::optional<std::string>("ann"); }};
    made.post("/orders", settle::http::idempotent(db_, policy, [this](const auto&, settle::transaction& tx) {
                insert(tx);
                return answer();
              }));
    made.post("/plain", [this](const settle::http::request&) {
      place_alone();
      return answer();
    });
    return made;
  }

  static settle::http::response answer() {
    return settle::http::text(200, "application/json", R"({"id":7,"total_cents":4200})");
  }

  void insert(settle::transaction& tx) {
    tx.execute("insert into orders (id, total_cents) values ($1, $2)", {++number_, 4200});
  }
  void place_alone() {
    auto tx = db_.begin();
    insert(tx);
    tx.commit();
  }

  settle::database& db_;
  std::atomic<std::int64_t> number_ = 0;
  settle::http::server server_;
  std::int64_t keys_ = 0;
  http_load keyed_{server_.port(), 1, [this](std::size_t, std::string_view) {
                     return post_of("/orders", R"({"total_cents":4200})",
                                    "Idempotency-Key: \"key-" + std::to_string(++keys_) + "\"\r\n");
                   }};
  http_load plain_{server_.port(), 1, [](std::size_t, std::string_view) {
                     return post_of("/plain", R"({"total_cents":4200})");
                   }};
};

}  // namespace bench

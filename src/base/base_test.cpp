// Small pieces of the base: retry arithmetic, hash, metrics, JSON attributes, errors, fault points.
#include <gtest/gtest.h>

#include <set>

#include "base/error_detail.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/quadratic_wait.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "settle/testing.hpp"
#include "support/expect_error.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::code_of;

// Lanes and partitions are stored by this hash: these values may never change.
TEST(stable_hash, has_the_values_it_has_always_had) {
  EXPECT_EQ(stable_hash(""), 0xefd01f60ba992926);
  EXPECT_EQ(stable_hash("a"), 0x82a2a958a9bece5b);
  EXPECT_EQ(stable_hash("order-42"), 0x8e47543c313c6386);
  EXPECT_EQ(stable_hash("kunde-zürich"), 0x6ab3180ee7e6c87f);
  EXPECT_EQ(stable_hash("a\0b"s), 0xab78f5eca36d0e2b);
  EXPECT_EQ(stable_hash("\xff"), 0x1bbd5c813c69a8d7);
}

TEST(stable_hash, spreads_numbered_keys_over_all_lanes) {
  std::set<std::uint64_t> lanes;
  for (int i = 0; i < 4096; ++i) lanes.insert(stable_hash("order-" + std::to_string(i)) % 256);
  EXPECT_EQ(lanes.size(), 256u);
}

// Proves C3: attempt² · 100 ms, capped
TEST(quadratic_wait, grows_with_the_square_of_the_failures_up_to_the_longest) {
  EXPECT_EQ(quadratic_wait(1, 100ms, 30s), 100ms);
  EXPECT_EQ(quadratic_wait(2, 100ms, 30s), 400ms);
  EXPECT_EQ(quadratic_wait(5, 100ms, 30s), 2500ms);
  EXPECT_EQ(quadratic_wait(17, 100ms, 30s), 28'900ms);
  EXPECT_EQ(quadratic_wait(18, 100ms, 30s), 30s);
}

TEST(quadratic_wait, treats_no_failure_as_the_first) {
  EXPECT_EQ(quadratic_wait(0, 100ms, 30s), 100ms);
  EXPECT_EQ(quadratic_wait(-5, 100ms, 30s), 100ms);
}

TEST(quadratic_wait, never_overflows) {
  EXPECT_EQ(quadratic_wait(std::numeric_limits<std::int64_t>::max(), 1h, 24h), 24h);
  EXPECT_EQ(quadratic_wait(1'000'000, 1us, duration::max()), 100s);
  EXPECT_EQ(quadratic_wait(3, duration::max(), duration::max()), duration::max());
}

TEST(quadratic_wait, is_never_longer_than_the_longest_even_at_first) {
  EXPECT_EQ(quadratic_wait(1, 10s, 2s), 2s);
}

TEST(metrics, counts_each_name_and_label_set_apart) {
  metrics m;
  m.add("skips_total", {{"consumer", "warehouse"}});
  m.add("skips_total", {{"consumer", "warehouse"}}, 4);
  m.add("skips_total", {{"consumer", "mail"}});
  m.add("skips_total", {});
  EXPECT_EQ(m.value("skips_total", {{"consumer", "warehouse"}}), 5);
  EXPECT_EQ(m.value("skips_total", {{"consumer", "mail"}}), 1);
  EXPECT_EQ(m.value("skips_total", {}), 1);
  EXPECT_EQ(m.value("never_touched", {}), 0);
}

TEST(metrics, a_snapshot_reads_as_prometheus_writes_it) {
  metrics m;
  m.add("b_total", {{"x", "1"}, {"y", "2"}}, 3);
  m.add("a_total", {});
  EXPECT_EQ(m.snapshot(),
            (std::map<std::string, std::int64_t>{{"a_total", 1}, {"b_total{x=\"1\",y=\"2\"}", 3}}));
}

TEST(metrics, label_values_are_escaped_so_that_an_exporter_can_print_them) {
  metrics m;
  m.add("a_total", {{"x", "say \"hi\" \\ and\nbreak"}});
  EXPECT_EQ(m.snapshot().begin()->first, R"(a_total{x="say \"hi\" \\ and\nbreak"})");
}

// Proves D7
TEST(metrics, times_are_counted_by_how_long_they_were) {
  time_counts some;
  for (const auto us : {0, 100, 101, 1'000'000, 61'000'000}) some.add(duration(us));
  EXPECT_EQ(some.within(0), 2) << "a bound belongs to its bucket";
  EXPECT_EQ(some.within(1), 3);
  EXPECT_EQ(some.within(time_counts::bounds.size() - 1), 4) << "one is beyond the last bound";
  EXPECT_EQ(some.count(), 5);
  EXPECT_EQ(some.sum(), duration(62'000'201));
}

TEST(metrics, a_time_of_clocks_that_disagree_is_not_counted) {
  time_counts some;
  some.add(duration(-1));
  EXPECT_EQ(some.count(), 0);
  EXPECT_EQ(some.sum(), duration());
}

TEST(metrics, times_add_up_for_each_name_and_label_set) {
  metrics m;
  time_counts once;
  once.add(duration(300));
  m.add_times("seconds", {{"consumer", "a"}}, once);
  m.add_times("seconds", {{"consumer", "a"}}, once);
  m.add_times("seconds", {{"consumer", "b"}}, {});
  EXPECT_EQ(m.times("seconds", {{"consumer", "a"}}).count(), 2);
  EXPECT_EQ(m.times("seconds", {{"consumer", "a"}}).sum(), duration(600));
  EXPECT_EQ(m.times_snapshot().size(), 1U) << "adding nothing makes no series";
  EXPECT_TRUE(m.snapshot().empty());
}

TEST(metrics, adding_nothing_makes_no_series) {
  metrics m;
  m.add("a_total", {}, 0);
  EXPECT_TRUE(m.snapshot().empty());
}

TEST(json_attributes, come_back_as_they_went_in) {
  const attributes all{{"a", ""}, {"b", "Zürich 東京"}, {"c", "\"quoted\" \\ / \n\t"}, {"d", "nul\0inside"s}};
  EXPECT_EQ(attributes_from_json(to_json(all)), all);
}

TEST(json_attributes, none_is_an_empty_text) {
  EXPECT_EQ(to_json({}), "");
  EXPECT_TRUE(attributes_from_json("").empty());
  EXPECT_TRUE(attributes_from_json("{}").empty());
}

TEST(json_attributes, anything_but_an_object_is_refused) {
  for (const auto* text : {"[]", "\"a\"", "{", "{\"a\":\"b\"} x", " ", "1", "null"})
    EXPECT_EQ(code_of([&] { attributes_from_json(text); }), errc::decode_failed) << text;
}

TEST(json_attributes, bytes_that_are_not_utf8_are_read_as_they_are_so_that_nothing_behind_them_is_blocked) {
  EXPECT_EQ(attributes_from_json("{\"a\":\"\xff\"}"), (attributes{{"a", "\xff"}}));
}

TEST(json_attributes, values_that_other_programs_wrote_become_their_json_text) {
  EXPECT_EQ(attributes_from_json(R"({"a":1,"b":null,"c":{"d":true}})"),
            (attributes{{"a", "1"}, {"b", "null"}, {"c", R"({"d":true})"}}));
}

TEST(errors, every_code_has_a_row_with_a_name_and_an_advice) {
  const auto last = static_cast<std::size_t>(errc::cancelled);
  ASSERT_EQ(all_errors().size(), last + 1);
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i <= last; ++i) {
    const auto& row = info(static_cast<errc>(i));
    EXPECT_EQ(row.code, static_cast<errc>(i));
    EXPECT_TRUE(seen.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.name.empty());
    EXPECT_EQ(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << row.name;
    EXPECT_GT(row.advice.size(), 10u) << row.name;
    EXPECT_EQ(to_string(row.code), row.name);
  }
}

TEST(errors, what_says_code_detail_and_advice) {
  const error e(errc::store_full, "orders.db");
  EXPECT_STREQ(e.what(), "store_full: orders.db (free disk space; nothing was lost)");
  EXPECT_EQ(e.code(), errc::store_full);
  EXPECT_TRUE(e.retryable());
  EXPECT_FALSE(e.outcome_unknown());
}

TEST(errors, one_that_is_passed_on_says_its_code_and_its_advice_once) {
  const error first(errc::store_full, "orders.db");
  EXPECT_STREQ(error(first.code(), first.what()).what(), first.what());
  EXPECT_STREQ(error(first.code(), std::string("COMMIT: ") + first.what()).what(),
               "store_full: COMMIT: orders.db (free disk space; nothing was lost)");
  const auto unsure = error::with_unknown_outcome(first.code(), first.what());
  EXPECT_STREQ(error::with_unknown_outcome(unsure.code(), unsure.what()).what(), unsure.what());
  EXPECT_STREQ(
      unsure.what(),
      "store_full: orders.db; the commit may have happened, so repeat it under the same key (free disk "
      "space; nothing was lost)");
  EXPECT_STREQ(
      error(errc::store_busy, first.what()).what(),
      (std::string("store_busy: ") + first.what() + " (" + std::string(info(errc::store_busy).advice) + ")")
          .c_str())
      << "another code is another matter";
}

TEST(errors, have_a_detail_between_code_and_advice) {
  EXPECT_EQ(detail_of(error(errc::store_full, "orders.db")), "orders.db");
  EXPECT_EQ(detail_of(error(errc::cancelled, "")), "");
}

TEST(errors, an_unknown_outcome_is_a_property_of_the_error_and_said_in_its_text) {
  const auto e = error::with_unknown_outcome(errc::store_unavailable, "COMMIT");
  EXPECT_TRUE(e.outcome_unknown());
  EXPECT_NE(std::string(e.what()).find("may have happened"), std::string::npos);
}

// Proves promise 7: trouble of the store can be retried; mistakes of the caller cannot
TEST(errors, troubles_of_store_and_destination_are_retryable_and_mistakes_are_not) {
  for (const auto code : {errc::store_busy, errc::store_unavailable, errc::store_full, errc::ownership_lost,
                          errc::destination_unavailable, errc::cancelled})
    EXPECT_TRUE(info(code).retryable) << to_string(code);
  for (const auto code :
       {errc::invalid_argument, errc::invalid_name, errc::payload_too_large, errc::constraint_violated,
        errc::statement_failed, errc::schema_newer, errc::migration_changed, errc::store_corrupt})
    EXPECT_FALSE(info(code).retryable) << to_string(code);
}

TEST(fault_points, an_effect_passes_one_before_and_one_after) {
  testing::fault_recorder recorder;
  environment env;
  env.faults = &recorder;
  bool done_in_between = false;
  const int result = with_fault_points(env, "disk.write", [&] {
    done_in_between = recorder.points == std::vector<std::string>{"disk.write.before"};
    return 7;
  });
  EXPECT_EQ(result, 7);
  EXPECT_TRUE(done_in_between);
  EXPECT_EQ(recorder.points, (std::vector<std::string>{"disk.write.before", "disk.write.after"}));
}

TEST(fault_points, an_effect_that_fails_does_not_reach_its_second_point) {
  testing::fault_recorder recorder;
  environment env;
  env.faults = &recorder;
  EXPECT_THROW(with_fault_points(env, "disk.write", [] { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(recorder.points, (std::vector<std::string>{"disk.write.before"}));
}

// Proves V3: the same seed gives the same run
TEST(seeded_random, repeats_itself_for_a_seed_and_differs_for_another) {
  testing::seeded_random one(42), same(42), other(43);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto drawn = one.next();
    EXPECT_EQ(drawn, same.next());
    differs = differs || drawn != other.next();
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace settle

#include "settle/publish.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "outbox/lanes.hpp"
#include "settle/sqlite.hpp"
#include "settle/testing.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"
#include "wire/attribute_names.hpp"

namespace settle {
namespace {

struct parcel_sent {
  std::string parcel;
};

}  // namespace

template <>
struct codec<parcel_sent> {
  static constexpr std::string_view topic = "parcels";
  static constexpr std::string_view type = "parcel.sent";
  static constexpr std::string_view aggregate_type = "parcel";
  static constexpr std::string_view content_type = "text/plain";
  static std::string key(const parcel_sent& e) { return e.parcel; }
  static std::string encode(const parcel_sent& e) { return "sent:" + e.parcel; }
  static parcel_sent decode(std::string_view payload) { return {std::string(payload.substr(5))}; }
};

namespace {

using namespace std::string_literals;
using test::code_of;

event order_event() {
  event made;
  made.topic = "orders";
  made.type = "order.placed";
  made.key = "42";
  made.aggregate_type = "order";
  made.payload = "{}";
  return made;
}

std::optional<errc> refusal(const event& what, const publish_options& options = {}) {
  return code_of([&] { publish_statement(what, options, {}, {}); });
}

// What each rule refuses, one change to a good event at a time.
template <class Change>
std::optional<errc> refusal_after(Change change) {
  auto what = order_event();
  change(what);
  return refusal(what);
}

TEST(publish_rules, a_good_event_passes) { EXPECT_EQ(refusal(order_event()), std::nullopt); }

TEST(publish_rules, topic_type_and_content_type_are_needed_and_bounded) {
  for (auto event::* name : {&event::topic, &event::type, &event::content_type}) {
    EXPECT_EQ(refusal_after([&](event& e) { e.*name = ""; }), errc::invalid_name);
    EXPECT_EQ(refusal_after([&](event& e) { e.*name = std::string(255, 'x'); }), std::nullopt);
    EXPECT_EQ(refusal_after([&](event& e) { e.*name = std::string(256, 'x'); }), errc::invalid_name);
  }
}

TEST(publish_rules, key_and_aggregate_type_may_be_empty_and_are_bounded) {
  EXPECT_EQ(refusal_after([](event& e) { e.key = ""; }), std::nullopt);
  EXPECT_EQ(refusal_after([](event& e) { e.key = std::string(1024, 'x'); }), std::nullopt);
  EXPECT_EQ(refusal_after([](event& e) { e.key = std::string(1025, 'x'); }), errc::invalid_name);
  EXPECT_EQ(refusal_after([](event& e) { e.aggregate_type = ""; }), std::nullopt);
  EXPECT_EQ(refusal_after([](event& e) { e.aggregate_type = std::string(256, 'x'); }), errc::invalid_name);
}

TEST(publish_rules, names_are_utf8_without_control_characters) {
  for (auto event::* name :
       {&event::topic, &event::type, &event::key, &event::aggregate_type, &event::content_type}) {
    EXPECT_EQ(refusal_after([&](event& e) { e.*name = "東京"; }), std::nullopt);
    for (const auto& bad : {"nul\0inside"s, "new\nline"s, "not utf-8 \xff"s, "\x7f"s})
      EXPECT_EQ(refusal_after([&](event& e) { e.*name = bad; }), errc::invalid_name);
  }
}

TEST(publish_rules, header_names_are_lower_case_letters_and_digits) {
  EXPECT_EQ(refusal_after([](event& e) { e.headers["tenant7"] = "a"; }), std::nullopt);
  for (const auto& bad : {""s, "Tenant"s, "tenant-id"s, "settle-dlq-reason"s, "tenant_id"s, "ten ant"s,
                          "t\0"s, std::string(256, 'x')})
    EXPECT_EQ(refusal_after([&](event& e) { e.headers[bad] = "a"; }), errc::invalid_name) << bad;
}

TEST(publish_rules, headers_that_settle_writes_itself_are_refused) {
  for (const auto& one : reserved_attributes()) {
    const std::string name(one.name);
    EXPECT_EQ(refusal_after([&](event& e) { e.headers[name] = "a"; }), errc::invalid_name) << name;
  }
}

TEST(publish_rules, header_values_are_printable_and_bounded) {
  EXPECT_EQ(refusal_after([](event& e) { e.headers["a"] = ""; }), std::nullopt);
  EXPECT_EQ(refusal_after([](event& e) { e.headers["a"] = std::string(8192, 'x'); }), std::nullopt);
  EXPECT_EQ(refusal_after([](event& e) { e.headers["a"] = std::string(8193, 'x'); }), errc::invalid_name);
  EXPECT_EQ(refusal_after([](event& e) { e.headers["a"] = "a\nb"; }), errc::invalid_name);
  EXPECT_EQ(refusal_after([](event& e) { e.headers["a"] = "\xff"; }), errc::invalid_name);
}

TEST(publish_rules, there_are_at_most_64_headers) {
  const auto with = [](int count) {
    return refusal_after([&](event& e) {
      for (int i = 0; i < count; ++i) e.headers["h" + std::to_string(i)] = "x";
    });
  };
  EXPECT_EQ(with(64), std::nullopt);
  EXPECT_EQ(with(65), errc::invalid_argument);
}

TEST(publish_rules, a_cause_is_text_like_any_header) {
  publish_options options;
  options.cause.correlation_id = "a\nb";
  EXPECT_EQ(refusal(order_event(), options), errc::invalid_name);
  options.cause.correlation_id = std::string(8193, 'x');
  EXPECT_EQ(refusal(order_event(), options), errc::invalid_name);
}

TEST(publish_rules, a_payload_may_be_as_large_as_the_limit_and_no_larger) {
  EXPECT_EQ(refusal_after([](event& e) { e.payload = std::string(1024 * 1024, 'x'); }), std::nullopt);
  EXPECT_EQ(refusal_after([](event& e) { e.payload = std::string(1024 * 1024 + 1, 'x'); }),
            errc::payload_too_large);
  auto what = order_event();
  what.payload = "12345";
  publish_options options;
  options.payload_bytes_max = 4;
  EXPECT_EQ(refusal(what, options), errc::payload_too_large);
  options.payload_bytes_max = 5;
  EXPECT_EQ(refusal(what, options), std::nullopt);
}

class publishing : public ::testing::Test {
 protected:
  publishing() {
    env_.time = &time_;
    env_.faults = &faults_;
    db_ = sqlite::open(dir_.file("orders.db"), {.env = env_});
    migrate(*db_);
    faults_.points.clear();
  }

  static constexpr auto columns =
      "select lane, event_id, topic, event_type, aggregate_type, aggregate_id, content_type, headers, "
      "created_at, payload "
      "from settle_outbox order by seq";

  attributes headers_of_only_row(transaction& tx) {
    return attributes_from_json(tx.execute(columns)[0][7].text());
  }

  testing::manual_time time_;
  testing::fault_recorder faults_;
  environment env_;
  test::temp_dir dir_;
  std::unique_ptr<database> db_;
};

// Proves O2
TEST_F(publishing, writes_one_row_with_everything_that_the_event_has) {
  auto what = order_event();
  what.headers["tenant"] = "acme";
  what.payload = "\0\xff bytes"s;
  auto tx = db_->begin();
  const auto id = publish(tx, what);
  const auto rows = tx.execute(columns);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0][0].integer(), outbox::lane_of("42", ""));
  EXPECT_EQ(rows[0][1].text(), id.text());
  EXPECT_EQ(rows[0][2].text(), "orders");
  EXPECT_EQ(rows[0][3].text(), "order.placed");
  EXPECT_EQ(rows[0][4].text(), "order");
  EXPECT_EQ(rows[0][5].text(), "42");
  EXPECT_EQ(rows[0][6].text(), "application/json");
  EXPECT_EQ(rows[0][7].text(), R"({"tenant":"acme"})");
  EXPECT_EQ(rows[0][8].time(), time_.now());
  EXPECT_EQ(rows[0][9].bytes(), what.payload);
}

// Proves O2
TEST_F(publishing, an_unpublished_event_reads_as_pending_in_the_view) {
  auto tx = db_->begin();
  publish(tx, order_event());
  const auto row = tx.execute("select status, published_at, attempts, last_error from settle_outbox_events");
  ASSERT_EQ(row.size(), 1u);
  EXPECT_EQ(row[0][0].text(), "PENDING");
  EXPECT_TRUE(row[0][1].is_null());
  EXPECT_EQ(row[0][2].integer(), 0);
  EXPECT_TRUE(row[0][3].is_null());
}

// Proves O1
TEST_F(publishing, commits_and_rolls_back_with_the_callers_transaction) {
  {
    auto tx = db_->begin();
    publish(tx, order_event());
  }
  EXPECT_TRUE(db_->read().execute(columns).empty());
  auto tx = db_->begin();
  publish(tx, order_event());
  tx.commit();
  EXPECT_EQ(db_->read().execute(columns).size(), 1u);
}

TEST_F(publishing, gives_each_event_a_new_id_unless_the_caller_has_one) {
  auto tx = db_->begin();
  const auto first = publish(tx, order_event());
  const auto second = publish(tx, order_event());
  EXPECT_LT(first, second);
  const auto mine = system_ids().next_as<event_id>();
  publish_options options;
  options.id = mine;
  EXPECT_EQ(publish(tx, order_event(), options), mine);
  EXPECT_EQ(tx.execute(columns)[2][1].text(), mine.text());
}

TEST_F(publishing, a_refused_event_does_not_touch_the_transaction) {
  auto large = order_event();
  large.payload = std::string(1024 * 1024 + 1, 'x');
  auto nameless = order_event();
  nameless.topic = "";
  auto tx = db_->begin();
  EXPECT_EQ(code_of([&] { publish(tx, large); }), errc::payload_too_large);
  EXPECT_EQ(code_of([&] { publish(tx, nameless); }), errc::invalid_name);
  EXPECT_TRUE(faults_.points.empty()) << "reached " << faults_.points.front();
  publish(tx, order_event());
  tx.commit();
  EXPECT_EQ(db_->read().execute(columns).size(), 1u);
}

TEST_F(publishing, an_event_inherits_the_cause_of_its_transaction) {
  auto tx = db_->begin();
  tx.set_cause({"correlation", "causation", "00-trace-01", "state"});
  publish(tx, order_event());
  EXPECT_EQ(headers_of_only_row(tx), (attributes{{"correlationid", "correlation"},
                                                 {"causationid", "causation"},
                                                 {"traceparent", "00-trace-01"},
                                                 {"tracestate", "state"}}));
}

TEST_F(publishing, what_the_caller_says_about_the_cause_goes_before_what_is_inherited) {
  auto tx = db_->begin();
  tx.set_cause({"inherited", "inherited", "inherited", "inherited"});
  publish_options options;
  options.cause.causation_id = "own";
  options.cause.traceparent = "own";
  publish(tx, order_event(), options);
  // A trace state belongs to its trace parent: one is never taken without the other.
  EXPECT_EQ(headers_of_only_row(tx),
            (attributes{{"correlationid", "inherited"}, {"causationid", "own"}, {"traceparent", "own"}}));
}

TEST_F(publishing, the_statement_for_other_drivers_writes_the_same_row) {
  auto what = order_event();
  what.headers["tenant"] = "acme";
  publish_options options;
  options.cause = {"correlation", "causation", "parent", "state"};
  options.id = system_ids().next_as<event_id>();
  auto tx = db_->begin();
  publish(tx, what, options);
  tx.execute(publish_statement(what, options, *options.id, time_.now()));
  const auto rows = tx.execute(columns);
  ASSERT_EQ(rows.size(), 2u);
  for (std::size_t column = 0; column < 10; ++column) EXPECT_EQ(rows[0][column], rows[1][column]) << column;
}

TEST_F(publishing, a_typed_event_goes_through_its_codec) {
  auto tx = db_->begin();
  publish(tx, parcel_sent{"p-7"});
  const auto rows = tx.execute(columns);
  EXPECT_EQ(rows[0][2].text(), "parcels");
  EXPECT_EQ(rows[0][3].text(), "parcel.sent");
  EXPECT_EQ(rows[0][4].text(), "parcel");
  EXPECT_EQ(rows[0][5].text(), "p-7");
  EXPECT_EQ(rows[0][6].text(), "text/plain");
  EXPECT_EQ(rows[0][9].bytes(), "sent:p-7");
}

TEST_F(publishing, passes_a_fault_point_before_and_after_the_insert) {
  auto tx = db_->begin();
  publish(tx, order_event());
  EXPECT_EQ(faults_.points, (std::vector<std::string>{"outbox.insert.before", "outbox.insert.after"}));
}

}  // namespace
}  // namespace settle

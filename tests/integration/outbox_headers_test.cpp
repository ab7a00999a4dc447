// Rows that other programs wrote into the outbox table, with headers that publish() would have refused: every
// event reaches everybody, with valid CloudEvents attributes; on both databases.
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "dead_letter/shared.hpp"
#include "outbox/lanes.hpp"
#include "settle/dead_letter.hpp"
#include "settle/driver/broker.hpp"
#include "settle/verify.hpp"
#include "support/dead_letter_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;

struct outbox_headers : test::dead_letter_world {
  // As a program would that knows the table and nothing of the library.
  event_id insert_by_hand(const std::string& headers, const std::string& topic = "orders") {
    const auto id = db->env().ids->next_as<event_id>();
    auto tx = db->begin();
    tx.execute("insert into " + table("outbox") +
                   " (lane, event_id, topic, event_type, aggregate_id, headers, created_at, payload)"
                   " values ($1, " +
                   (on_postgres() ? "$2::uuid" : "$2") + ", $3, 'order.placed', 'k', $4, $5, $6)",
               {outbox::lane_of("k", id.text()), id, topic, headers, time.now(), blob{"{}"}});
    tx.commit();
    return id;
  }

  static attributes without_numbers(attributes all) {
    all.erase("sequence");
    all.erase("settleplace");
    return all;
  }

  message only_one_delivered() {
    const auto seen = deliver();
    EXPECT_EQ(seen.size(), 1u);
    return seen.empty() ? message() : seen[0];
  }
};

// Proves O1, O8
TEST_P(outbox_headers, an_address_of_a_replay_that_there_never_was_keeps_nobody_from_the_event) {
  const auto id = insert_by_hand(R"({"settlereplayfor":"x","tenant":"blue"})");
  const auto m = only_one_delivered();
  EXPECT_EQ(m.id, id.text());
  EXPECT_EQ(replay_address(m), "") << "every consumer would skip it";
  EXPECT_EQ(without_numbers(m.extensions), (attributes{{"headersettlereplayfor", "x"}, {"tenant", "blue"}}));
  EXPECT_EQ(log.count("outbox_headers_changed outbox=" + db->name() + " id=" + id.text() +
                      " topic=orders changes='settlereplayfor' to headersettlereplayfor"),
            1u);
  EXPECT_EQ(counters.value("settle_outbox_headers_changed_total", {{"topic", "orders"}}), 1);
  insert_by_hand(R"({"settlereplayfor":"x","id":"y"})");
  deliver();
  EXPECT_EQ(counters.value("settle_outbox_headers_changed_total", {{"topic", "orders"}}), 2) << "by event";
  verify_input input;
  input.services = {db.get()};
  EXPECT_EQ(verify(input).committed, 2) << "and the checker would not count them";
}

// Proves O8
TEST_P(outbox_headers, names_that_settle_or_cloudevents_write_get_header_in_front) {
  const auto id = insert_by_hand(
      R"({"id":"1","source":"s","type":"t","time":"now","data":"d","sequence":"9","settleplace":"z",)"
      R"("settledatabase":"d","settlereplay":"1","settleoutoforder":"true","settledlqreason":"r",)"
      R"("correlationid":"c","traceparent":"00-1","Tenant-Id":"7","!":"lost","note":"a\nb"})");
  const auto m = only_one_delivered();
  EXPECT_EQ(without_numbers(m.extensions), (attributes{{"headerid", "1"},
                                                       {"headersource", "s"},
                                                       {"headertype", "t"},
                                                       {"headertime", "now"},
                                                       {"headerdata", "d"},
                                                       {"headersequence", "9"},
                                                       {"headersettleplace", "z"},
                                                       {"headersettledatabase", "d"},
                                                       {"headersettlereplay", "1"},
                                                       {"headersettleoutoforder", "true"},
                                                       {"headersettledlqreason", "r"},
                                                       {"correlationid", "c"},
                                                       {"traceparent", "00-1"},
                                                       {"tenantid", "7"},
                                                       {"note", "a b"}}));
  int named_id = 0;
  for (const auto& [name, content] : cloudevents_attributes(m))
    if (name == "id") {
      ++named_id;
      EXPECT_EQ(content, id.text());
    }
  EXPECT_EQ(named_id, 1);
}

// Proves O1
TEST_P(outbox_headers, that_nobody_can_read_stop_no_event) {
  std::string deep = "1";
  for (int i = 0; i < 200; ++i) deep = "[" + deep + "]";
  const auto id = insert_by_hand(R"({"a":)" + deep + "}");
  EXPECT_EQ(only_one_delivered().id, id.text());
  EXPECT_EQ(log.count("outbox_headers_changed"), 1u);
}

// Proves D1, D3
TEST_P(outbox_headers, a_real_replay_keeps_its_address_and_a_copy_of_its_headers_does_not) {
  const auto letter_id = write(letter(placed("42")));
  deliver();
  replay(*db, {.ids = {letter_id}}, {.wait_max = 0s, .poll = 1ms});
  const auto real = only_one_delivered();
  EXPECT_EQ(replay_address(real), "warehouse");
  EXPECT_EQ(log.count("outbox_headers_changed"), 0u);
  // What a program does that passes on the headers of what it has received.
  insert_by_hand(to_json(without_numbers(real.extensions)));
  const auto copy = only_one_delivered();
  EXPECT_EQ(replay_address(copy), "");
  EXPECT_EQ(copy.extensions.at("headersettlereplayof"), real.extensions.at("settlereplayof"));
  insert_by_hand(to_json(without_numbers(real.extensions)), "invoices");
  EXPECT_EQ(replay_address(only_one_delivered()), "");
  verify_input input;
  input.services = {db.get()};
  EXPECT_EQ(verify(input).committed, 3) << "the announcement and both copies; not the replay";
}

// Proves D1, D3
TEST_P(outbox_headers, a_replay_of_a_message_without_a_uuid_keeps_its_address) {
  auto foreign = placed("42");
  foreign.id = "message 7 of another broker";
  const auto letter_id = write(letter(foreign));
  deliver();
  replay(*db, {.ids = {letter_id}}, {.wait_max = 0s, .poll = 1ms});
  EXPECT_EQ(replay_address(only_one_delivered()), "warehouse");
  verify_input input;
  input.services = {db.get()};
  EXPECT_EQ(verify(input).committed, 1) << "the announcement";
}

// Rows of the last release that were not published when it was replaced. Proves D1, O8
TEST_P(outbox_headers, of_dead_letters_that_an_older_version_announced_get_their_new_names) {
  insert_by_hand(R"({"settle-dlq-failed-at":"yesterday","settle-dlq-reason":"exhausted","tenant":"blue"})",
                 "orders.dlq");
  EXPECT_EQ(
      without_numbers(only_one_delivered().extensions),
      (attributes{{"settledlqfailedat", "yesterday"}, {"settledlqreason", "exhausted"}, {"tenant", "blue"}}));
  EXPECT_EQ(log.count("outbox_headers_changed"), 0u) << "nobody has to correct anything";
}

INSTANTIATE_TEST_SUITE_P(databases, outbox_headers, ::testing::Values(dialect::sqlite, dialect::postgres),
                         [](const auto& chosen) {
                           return chosen.param == dialect::sqlite ? "sqlite" : "postgres";
                         });

}  // namespace
}  // namespace settle

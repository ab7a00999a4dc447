// Publishing from other languages: the SQL function and the view check what the library checks, and say it
// with the same words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "base/json.hpp"
#include "settle/error.hpp"
#include "settle/postgres.hpp"
#include "settle/publish.hpp"
#include "sql/migrations.hpp"
#include "support/postgres_outbox_fixture.hpp"
#include "wire/attribute_names.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

struct publishing_with_sql : test::postgres_outbox {
  static event good() {
    return {.topic = "orders",
            .type = "order.placed",
            .key = "42",
            .aggregate_type = "order",
            .payload = "{}",
            .headers = {{"tenant", "blue"}}};
  }

  // What the library says, or nothing.
  static std::string library(const event& what) {
    try {
      publish_statement(what, {}, {}, {});
    } catch (const error& e) {
      return e.what();
    }
    return {};
  }

  static std::string quoted(const std::string& text) {
    std::string out = "E'";
    for (const char c : text) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    return out + "'";
  }

  // What the server says, as the library would: the message, and the hint in brackets.
  std::string said_by(const std::string& sql) const {
    try {
      own->run(sql);
    } catch (const std::runtime_error& e) {
      const std::string all = e.what();
      const auto message = all.find("ERROR:  "), hint = all.find("\nHINT:  ");
      if (message == std::string::npos || hint == std::string::npos) return all;
      const auto end = all.find('\n', hint + 1);
      return all.substr(message + 8, all.find('\n', message) - message - 8) + " (" +
             all.substr(hint + 8, end - hint - 8) + ")";
    }
    return {};
  }

  std::string by_function(const event& what) const {
    return said_by(
        fmt::format("select settle.publish({}, {}, {}, {}::bytea, aggregate_type => {}, content_type => {}, "
                    "headers => {})",
                    quoted(what.topic), quoted(what.type), quoted(what.key), quoted_bytes(what.payload),
                    quoted(what.aggregate_type), quoted(what.content_type), headers_of(what)));
  }

  std::string by_view(const event& what) const {
    return said_by(
        fmt::format("insert into settle.outbox_events (topic, event_type, aggregate_id, aggregate_type, "
                    "payload, headers) "
                    "values ({}, {}, {}, {}, {}, {})",
                    quoted(what.topic), quoted(what.type), quoted(what.key), quoted(what.aggregate_type),
                    quoted_bytes(what.payload), headers_of(what)));
  }

  // Of one letter, whose number alone matters.
  static std::string quoted_bytes(const std::string& payload) {
    return fmt::format("convert_to(repeat('x', {}), 'UTF8')", payload.size());
  }
  static std::string headers_of(const event& what) {
    return what.headers.empty() ? "null" : quoted(to_json(what.headers));
  }
};

using change = std::function<void(event&)>;

std::vector<change> mistakes() {
  std::vector<change> all;
  const std::string long_name(256, 'x');
  for (auto event::* name : {&event::topic, &event::type, &event::content_type}) {
    all.push_back([=](event& e) { e.*name = ""; });
    all.push_back([=](event& e) { e.*name = long_name; });
    all.push_back([=](event& e) { e.*name = "ab\ncd"; });
  }
  for (auto event::* name : {&event::key, &event::aggregate_type}) {
    all.push_back([=](event& e) { e.*name = std::string(1025, 'x'); });
    all.push_back([=](event& e) { e.*name = "東京\x7f"; });
  }
  for (const auto* name : {"Tenant", "tenant-id", "tenant_id", "ten ant", "", "settle-dlq-reason", "naïve"})
    all.push_back([=](event& e) { e.headers[name] = "a"; });
  all.push_back([=](event& e) { e.headers[long_name] = "a"; });
  all.push_back([](event& e) { e.headers["a"] = std::string(8193, 'x'); });
  all.push_back([](event& e) { e.headers["a"] = "x\ty"; });
  all.push_back([](event& e) {
    for (int i = 0; i < 65; ++i) e.headers["h" + std::to_string(i)] = "x";
  });
  all.push_back([](event& e) { e.payload = std::string(1024 * 1024 + 1, 'x'); });
  for (const auto& one : reserved_attributes())
    if (one.writer != attribute_writer::cause)
      all.push_back([=](event& e) { e.headers[std::string(one.name)] = "a"; });
  return all;
}

// Proves O1, O8
TEST_F(publishing_with_sql, what_the_library_refuses_is_refused_at_the_call_with_the_same_words) {
  for (const auto& mistake : mistakes()) {
    auto what = good();
    mistake(what);
    const auto expected = library(what);
    ASSERT_NE(expected, "");
    EXPECT_EQ(by_function(what), expected);
    if (what.content_type != good().content_type) continue;  // the view has no such column
    EXPECT_EQ(by_view(what), expected);
  }
  EXPECT_EQ(count("settle.outbox"), 0);
}

TEST_F(publishing_with_sql, what_the_library_takes_is_taken) {
  const std::vector<change> good_ones{
      [](event&) {},
      [](event& e) { e.key = ""; },
      [](event& e) { e.key = std::string(1024, 'x'); },
      [](event& e) { e.aggregate_type = ""; },
      [](event& e) { e.topic = "東京"; },
      [](event& e) { e.topic = e.type = e.aggregate_type = std::string(255, 'x'); },
      [](event& e) { e.headers.clear(); },
      [](event& e) { e.headers[std::string(255, 'x')] = std::string(8192, 'x'); },
      [](event& e) { e.headers["a"] = ""; },
      [](event& e) { e.payload = std::string(1024 * 1024, 'x'); },
      [](event& e) { e.payload = ""; },
      [](event& e) {
        e.headers.clear();
        for (int i = 0; i < 64; ++i) e.headers["h" + std::to_string(i)] = "x";
      }};
  for (const auto& made : good_ones) {
    auto what = good();
    made(what);
    EXPECT_EQ(library(what), "");
    EXPECT_EQ(by_function(what), "");
    EXPECT_EQ(by_view(what), "");
  }
  relay r(*db, destination);
  run(r);
  EXPECT_EQ(destination.seen.size(), 2 * good_ones.size());
  EXPECT_EQ(log.count("outbox_headers_changed"), 0u);
}

// There is no other way to say them in SQL.
TEST_F(publishing_with_sql, the_cause_and_the_trace_of_an_event_are_headers) {
  own->run(
      R"(select settle.publish('t', 'e', 'k', '{}'::jsonb, headers => '{"correlationid": "c", "causationid": "b",
         "traceparent": "00-1", "tracestate": "s"}'))");
  relay r(*db, destination);
  run(r);
  ASSERT_EQ(destination.seen.size(), 1u);
  EXPECT_EQ(destination.seen[0].extensions.at("correlationid"), "c");
  EXPECT_EQ(destination.seen[0].extensions.at("tracestate"), "s");
}

TEST_F(publishing_with_sql, what_the_library_cannot_even_be_given_is_refused) {
  const auto said = [&](const std::string& arguments) {
    return said_by("select settle.publish(" + arguments + ")");
  };
  EXPECT_EQ(said("null, 'e', 'k', '{}'::jsonb"),
            "invalid_name: the topic is empty (correct the name as the message says)");
  EXPECT_EQ(said("'t', 'e', 'k', null::jsonb"),
            "invalid_argument: the payload is null (correct the value that the message names)");
  EXPECT_EQ(said("'t', 'e', 'k', '{}'::jsonb, headers => '[1]'"),
            "invalid_argument: the headers are no JSON object (correct the value that the message names)");
  for (const auto* value : {"null", "[1]", "{}"})
    EXPECT_EQ(
        said(fmt::format(R"('t', 'e', 'k', '{{}}'::jsonb, headers => '{{"a": {}}}')", value)),
        "invalid_argument: the value of header 'a' is no text (correct the value that the message names)");
  EXPECT_EQ(count("settle.outbox"), 0);
}

// Proves O2, O13
TEST_F(publishing_with_sql, every_kind_of_payload_takes_every_option) {
  const std::map<std::string, std::string> payloads{
      {"jsonb", R"({"total": 1})"}, {"text", R"({"total":1})"}, {"bytea", "bytes"}};
  const auto at = std::to_string((time.now() + 1h).time_since_epoch() / 1s);
  int number = 0;
  for (const auto& [type, payload] : payloads)
    own->run(fmt::format(
        "select settle.publish('orders', 'order.placed', '42', '{}'::{}, aggregate_type => 'order',"
        R"( headers => '{{"tenant": "blue"}}', content_type => 'text/x',)"
        " event_id => '00000000-0000-4000-8000-00000000000{}', deliver_at => to_timestamp({}))",
        payload, type, number++, at));
  relay r(*db, destination);
  run(r);
  EXPECT_TRUE(destination.seen.empty());
  time.advance(1h);
  run(r);
  ASSERT_EQ(destination.seen.size(), payloads.size());
  number = 0;
  for (const auto& [type, payload] : payloads) {
    const auto& m = destination.seen[static_cast<std::size_t>(number)];
    EXPECT_EQ(m.id, fmt::format("00000000-0000-4000-8000-00000000000{}", number++));
    EXPECT_EQ(m.payload, payload);
    EXPECT_EQ(m.subject, "order/42");
    EXPECT_EQ(m.content_type, "text/x");
    EXPECT_EQ(m.extensions.at("tenant"), "blue");
  }
}

TEST_F(publishing_with_sql, calls_with_four_arguments_find_their_function_as_before) {
  own->run(R"(select settle.publish('t', 'e', 'k', 'literal'))");
  own->run(R"(select settle.publish('t', 'e', 'k', '{"a": 1}'::jsonb))");
  own->run(R"(select settle.publish('t', 'e', 'k', 'bytes'::bytea))");
  own->run(R"(select settle.publish(topic => 't', event_type => 'e', key => 'k', payload => 'named'::text))");
  relay r(*db, destination);
  run(r);
  EXPECT_EQ(payloads(), (std::vector<std::string>{"literal", R"({"a": 1})", "bytes", "named"}));
}

TEST_F(publishing_with_sql, a_session_may_raise_the_limit_of_payloads) {
  const auto large = "select settle.publish('t', 'e', 'k', repeat('x', 2000000))"s;
  EXPECT_NE(said_by(large).find("the payload of e has 2000000 bytes, payload_bytes_max is 1048576"),
            std::string::npos);
  const auto limited = [&](const std::string& bytes) {
    return said_by("begin; set local settle.payload_bytes_max = '" + bytes + "'; " + large + "; commit");
  };
  EXPECT_EQ(limited("2000000"), "");
  EXPECT_NE(limited("1999999").find("payload_bytes_max is 1999999"), std::string::npos);
}

// As object-relational mappers insert: they want back what the server has filled in. Proves O2
TEST_F(publishing_with_sql, the_publishers_role_gets_back_what_an_insert_into_the_view_has_made) {
  const auto id = own->run(
      "set role settle_publisher; insert into settle.outbox_events (topic, event_type, aggregate_id, "
      "payload) "
      "values ('t', 'e', 'k', 'x') returning event_id");
  EXPECT_TRUE(event_id::parse(id)) << id;
  const auto filled_in = own->run(
      "set role settle_publisher; insert into settle.outbox_events (topic, event_type, aggregate_id, "
      "payload) "
      "values ('t', 'e', 'k', 'x') returning (id, created_at is not null, event_id is not null)::text");
  EXPECT_EQ(filled_in, "(" + own->run("select max(seq) from settle.outbox") + ",t,t)");
  EXPECT_ANY_THROW(own->run("set role settle_publisher; select payload from settle.outbox_events"));
  relay r(*db, destination);
  run(r);
  EXPECT_EQ(destination.seen.at(0).id, id);
}

// Functions with more parameters take the place of those that some may have granted to roles of their own.
TEST_F(publishing_with_sql, whoever_was_allowed_to_publish_before_the_checks_came_still_is) {
  const test::scratch_database older;
  const auto of_older = postgres::open(older.conninfo(), {.env = env});
  const auto all = sql::service_migrations(dialect::postgres);
  const auto checks = std::ranges::find(all, "checked_events", &sql::migration::name);
  ASSERT_NE(checks, all.end());
  sql::apply_migrations(*of_older, {all.begin(), checks});
  const auto role = "role_of_" + older.name();
  older.run(
      "create role " + role + "; grant usage on schema settle to " + role +
      "; grant execute on function settle.publish(text, text, text, text), settle.publish(text, text, text, "
      "bytea, text, jsonb, text, uuid, timestamptz) to " +
      role);
  migrate(*of_older);
  const auto as_role = [&](const std::string& payload) {
    older.run("set role " + role + "; select settle.publish('t', 'e', 'k', '{}'::" + payload + ")");
  };
  EXPECT_NO_THROW(as_role("text"));
  EXPECT_NO_THROW(as_role("text, headers => '{\"tenant\": \"blue\"}'"));
  EXPECT_ANY_THROW(as_role("jsonb")) << "it was not granted";
  older.run("drop owned by " + role + "; drop role " + role);
}

}  // namespace
}  // namespace settle

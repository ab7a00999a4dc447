// The webhook inbox, on both databases: what is answered when, and effects in the service's own transaction.
#include <atomic>
#include <latch>
#include <map>
#include <thread>

#include "support/expect_error.hpp"
#include "support/service_connection.hpp"
#include "support/webhook_world.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using webhook::answer;
using webhook::outcome;
using webhook::received;

struct webhook_inbox : test::webhook_world {
  void SetUp() override {
    webhook_world::SetUp();
    if (IsSkipped()) return;
    auto tx = db->begin();
    tx.execute("create table orders (id text primary key, status text not null)");
    tx.execute("create table payments (order_id text not null, gateway_transaction_id text not null)");
    tx.execute("insert into orders (id, status) values ('order-1', 'PENDING')");
    tx.commit();
  }

  // The whole of A3 for one gateway: payment record, state of the order, event.
  static answer pay(const received& event, transaction& tx) {
    tx.execute("insert into payments (order_id, gateway_transaction_id) values ($1, $2)",
               {event.key, event.id});
    tx.execute("update orders set status = 'PAID' where id = $1 and status = 'PENDING'", {event.key});
    publish(tx, event_of(event));
    return answer::done;
  }
  static settle::event event_of(const received& event) {
    return {.topic = "payments", .type = "payment.captured", .key = event.key, .payload = event.body};
  }

  std::string order() { return db->read().execute("select status from orders")[0][0].text(); }
};

// Proves A3: journaled before it is answered, with everything that is needed later
TEST_P(webhook_inbox, answers_200_after_the_journal_has_it_and_200_to_every_copy) {
  const auto body = payment("evt_1", "charge.succeeded", "ch_7", 1'600'000'000);
  const auto first = deliver(body);
  EXPECT_EQ(first.what, outcome::journaled);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.event_id, "evt_1");
  const auto entry = webhook::find(*db, "payments", "evt_1");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->status, "RECEIVED");
  EXPECT_EQ(entry->what.type, "charge.succeeded");
  EXPECT_EQ(entry->what.key, "ch_7");
  EXPECT_EQ(entry->what.time, timestamp(1'600'000'000s));
  EXPECT_EQ(entry->what.received_at, time.now());
  EXPECT_EQ(entry->what.body, body);
  for (int i = 0; i < 3; ++i) {
    time.advance(10min);  // copies are signed anew
    const auto copy = deliver(body);
    EXPECT_EQ(copy.what, outcome::duplicate);
    EXPECT_EQ(copy.status, 200);
  }
  EXPECT_EQ(number("select count(*) from " + table("webhook_events")), 1);
  EXPECT_EQ(counters.value("settle_webhooks_total", {{"source", "payments"}, {"outcome", "duplicate"}}), 3);
  EXPECT_EQ(webhook::find(*db, "payments", "evt_2"), std::nullopt);
}

// Proves A3: forged, replayed and truncated ones
TEST_P(webhook_inbox, answers_401_to_what_is_forged_and_keeps_nothing_of_it) {
  const auto body = payment("evt_1", "charge.succeeded", "ch_7");
  const auto good = test::stripe_signature(test::webhook_secret, time.now(), body);
  const auto send = [&](const std::string& signature, std::string_view content) {
    const webhook::request what{.headers = {{"Stripe-Signature", signature}}, .body = content};
    const auto received = inbox.receive(*db, what);
    const auto applied = inbox.apply(*db, what, log_effect);
    EXPECT_EQ(received.status, 401);
    EXPECT_EQ(applied.status, 401);
    EXPECT_EQ(received.what, outcome::refused);
    EXPECT_EQ(received.refused, applied.refused);
    return received.refused.value();
  };
  EXPECT_EQ(send("", body), webhook::refusal::no_signature);
  EXPECT_EQ(send(test::stripe_signature("guessed", time.now(), body), body), webhook::refusal::bad_signature);
  EXPECT_EQ(send(good, body.substr(0, body.size() - 1)), webhook::refusal::bad_signature);
  EXPECT_EQ(send(good, payment("evt_2", "charge.succeeded", "ch_7")), webhook::refusal::bad_signature);
  time.advance(6min);
  EXPECT_EQ(send(good, body), webhook::refusal::too_old) << "a recorded one that is sent again";
  EXPECT_EQ(number("select count(*) from " + table("webhook_events")), 0);
  EXPECT_EQ(effects(), 0);
  EXPECT_EQ(counters.value("settle_webhooks_total", {{"source", "payments"}, {"outcome", "refused"}}), 10);
}

TEST_P(webhook_inbox, logs_what_it_refuses_and_not_more_than_a_little) {
  for (int i = 0; i < 100; ++i) inbox.receive(*db, {});
  EXPECT_GE(log.count("webhook_not_taken source=payments outcome=refused"), 1u);
  EXPECT_LE(log.count("webhook_not_taken"), 5u);
}

TEST_P(webhook_inbox, answers_400_without_an_id_and_413_to_what_is_too_large) {
  for (const std::string body : {"{}", "[", R"({"id":""})", R"({"id":"a\u0000b"})"}) {
    EXPECT_EQ(deliver(body).status, 400) << body;
    EXPECT_EQ(apply(body).what, outcome::no_event_id) << body;
  }
  auto small = payments();
  small.body_bytes_max = 100;
  const webhook::inbox limited(small);
  EXPECT_EQ(deliver(limited, *db, payment("evt", "t", std::string(100, 'k'))).status, 413);
  EXPECT_EQ(deliver(limited, *db, R"({"id":"evt"})").status, 200);
  auto throwing = payments();
  throwing.event_id = [](const webhook::request&) -> std::string { throw std::runtime_error("no idea"); };
  EXPECT_EQ(deliver(webhook::inbox(throwing), *db, "{}").status, 400);
}

// Proves A3: a store that is away gives a retryable answer, never a 200
TEST_P(webhook_inbox, answers_503_while_the_store_is_away_and_takes_the_event_later) {
  struct away final : fault_points {
    void reached(std::string_view point) override {
      if (point == at) throw error(errc::store_unavailable, "away");
    }
    std::string at;
  } faults;
  const auto faulty = open(&faults);
  const auto body = payment("evt_1", "t", "k");
  for (const auto* at : {"webhook.receive.before", "webhook.receive.after"}) {
    faults.at = at;
    const auto made = deliver(inbox, *faulty, body);
    EXPECT_EQ(made.what, outcome::unavailable) << at;
    EXPECT_EQ(made.status, 503);
  }
  EXPECT_EQ(deliver(body).what, outcome::duplicate)
      << "the second one did commit, and only its answer was lost";
  for (const auto* at :
       {"webhook.insert.before", "webhook.insert.after", "webhook.handler.after", "webhook.apply.before"}) {
    faults.at = at;
    EXPECT_EQ(apply(inbox, *faulty, payment("evt_2", "t", "k"), log_effect).status, 503) << at;
  }
  EXPECT_EQ(effects(), 0);
  EXPECT_EQ(apply(payment("evt_2", "t", "k")).what, outcome::applied);
  EXPECT_EQ(effects(), 1);
  const auto empty = sqlite::open(dir.file("empty.db"), {.env = {.time = &time, .log = &log}});
  EXPECT_EQ(deliver(inbox, *empty, body).status, 503) << "no tables yet";
}

// Proves A3: the single-database form. Signature, lock, dedup on the gateway's transaction id, payment
// record, order and outbox in one transaction
TEST_P(webhook_inbox, applies_payment_order_and_event_in_one_transaction_and_once) {
  auto gateway = payments();
  gateway.event_id = webhook::in_json{"gateway_transaction_id"};
  gateway.key = webhook::in_json{"order"};
  const webhook::inbox to(gateway);
  const std::string body = R"({"id":"evt_1","gateway_transaction_id":"gw-9","order":"order-1"})";
  EXPECT_EQ(apply(to, *db, body, pay).what, outcome::applied);
  EXPECT_EQ(order(), "PAID");
  EXPECT_EQ(number("select count(*) from payments where gateway_transaction_id = 'gw-9'"), 1);
  EXPECT_EQ(published(), 1);
  // Another delivery with another envelope: the gateway's transaction is what counts.
  const std::string again = R"({"id":"evt_2","gateway_transaction_id":"gw-9","order":"order-1"})";
  const auto copy = apply(to, *db, again, pay);
  EXPECT_EQ(copy.what, outcome::duplicate);
  EXPECT_EQ(copy.status, 200);
  EXPECT_EQ(number("select count(*) from payments"), 1);
  EXPECT_EQ(published(), 1);
  EXPECT_EQ(status("gw-9"), "APPLIED");
}

// Proves A3
TEST_P(webhook_inbox, a_handler_that_fails_leaves_nothing_and_the_next_delivery_is_applied) {
  const auto body = payment("evt_1", "t", "order-1");
  const auto fails = [](const received& event, transaction& tx) -> answer {
    pay(event, tx);
    throw std::runtime_error("no such order");
  };
  const auto failed = apply(body, fails);
  EXPECT_EQ(failed.what, outcome::failed);
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.error, "no such order");
  EXPECT_EQ(order(), "PENDING");
  EXPECT_EQ(published(), 0);
  EXPECT_EQ(status("evt_1"), "");
  EXPECT_EQ(apply(body, pay).what, outcome::applied);
  EXPECT_EQ(order(), "PAID");
}

// Proves A3
TEST_P(webhook_inbox, answers_500_also_to_what_is_no_exception_of_the_standard_library) {
  const auto body = payment("evt_1", "t", "order-1");
  const auto failed = apply(body, [](const received& event, transaction& tx) -> answer {
    pay(event, tx);
    throw 42;
  });
  EXPECT_EQ(failed.what, outcome::failed);
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.event_id, "evt_1");
  EXPECT_NE(failed.error, "");
  EXPECT_EQ(order(), "PENDING");
  auto throwing = payments();
  throwing.event_id = [](const webhook::request&) -> std::string { throw 42; };
  EXPECT_EQ(deliver(webhook::inbox(throwing), *db, body).status, 400);
  EXPECT_EQ(apply(body, pay).what, outcome::applied);
}

// Proves A3: in a transaction that the service has begun and commits itself
TEST_P(webhook_inbox, joins_a_transaction_of_the_service) {
  const auto body = payment("evt_1", "t", "order-1");
  {
    auto tx = db->begin();
    EXPECT_EQ(apply(inbox, tx, body, pay).what, outcome::applied);
  }  // rolled back
  EXPECT_EQ(order(), "PENDING");
  EXPECT_EQ(status("evt_1"), "");
  auto tx = db->begin();
  tx.set_cause({.correlation_id = "c-1"});
  EXPECT_EQ(apply(inbox, tx, body, pay).what, outcome::applied);
  EXPECT_EQ(apply(inbox, tx, body, pay).what, outcome::duplicate);
  EXPECT_EQ(tx.cause().correlation_id, "c-1");
  EXPECT_EQ(tx.cause().causation_id, "");
  tx.execute("insert into effect_log (event, kind) values ('own', 'work')");
  tx.commit();
  EXPECT_EQ(order(), "PAID");
  EXPECT_EQ(published(), 1);
  EXPECT_EQ(effects(), 1);
}

// Proves A3
TEST_P(webhook_inbox,
       an_event_whose_handler_throws_is_as_if_it_had_not_come_also_if_its_transaction_commits) {
  const auto body = payment("evt_1", "t", "order-1");
  const auto fails = [](const received& event, transaction& tx) -> answer {
    pay(event, tx);
    throw std::runtime_error("no such order");
  };
  auto tx = db->begin();
  tx.execute("insert into effect_log (event, kind) values ('own', 'work')");
  EXPECT_THROW(apply(inbox, tx, body, fails), std::runtime_error);
  tx.commit();
  EXPECT_EQ(effects(), 1) << "what the caller wrote itself";
  EXPECT_EQ(order(), "PENDING");
  EXPECT_EQ(status("evt_1"), "");
  EXPECT_EQ(apply(body, pay).what, outcome::applied);
}

// Proves A3: what the database refuses is undone as well as what is thrown
TEST_P(webhook_inbox, whose_handler_fails_in_a_joined_transaction_leaves_what_its_owner_wrote) {
  const auto service = on_postgres() ? test::service_connection::to_postgres(own->conninfo())
                                     : test::service_connection::to_sqlite(dir.file("service.db"));
  const auto fails = [](const received& event, transaction& tx) {
    pay(event, tx);
    tx.execute("insert into orders (id, status) values ('order-1', 'TWICE')");
    return answer::done;
  };
  const auto body = payment("evt_1", "t", "order-1");
  service.begin();
  service.run("insert into effect_log (event, kind) values ('own', 'work')");
  const auto tx = service.join(db->env());
  EXPECT_EQ(test::code_of([&] { apply(inbox, *tx, body, fails); }), errc::constraint_violated);
  EXPECT_EQ(apply(inbox, *tx, payment("evt_2", "t", "order-1"), log_effect).what, outcome::applied);
  service.run("commit");
  EXPECT_EQ(effects(), 2);
  EXPECT_EQ(order(), "PENDING");
  EXPECT_EQ(status("evt_1"), "");
  EXPECT_EQ(apply(body, pay).what, outcome::applied);
}

TEST_P(webhook_inbox, undoes_what_a_handler_wrote_before_it_said_not_yet_or_ignore) {
  auto tx = db->begin();
  tx.execute("insert into effect_log (event, kind) values ('own', 'work')");
  const auto saying = [](answer what) {
    return [what](const received& event, transaction& in) {
      pay(event, in);
      return what;
    };
  };
  EXPECT_EQ(apply(inbox, tx, payment("early", "t", "order-1"), saying(answer::not_yet)).what,
            outcome::parked);
  EXPECT_EQ(apply(inbox, tx, payment("other", "t", "order-1"), saying(answer::ignore)).what,
            outcome::ignored);
  tx.commit();
  EXPECT_EQ(order(), "PENDING");
  EXPECT_EQ(published(), 0);
  EXPECT_EQ(effects(), 1) << "what the service wrote itself stays";
  EXPECT_EQ(status("early"), "PARKED");
  EXPECT_EQ(status("other"), "IGNORED");
  EXPECT_EQ(apply(payment("early", "t", "order-1"), pay).what, outcome::duplicate);
}

// Proves A3: a time that cannot be read is no silent hole in what tells stale ones and late copies
TEST_P(webhook_inbox, takes_an_event_whose_time_it_cannot_read_and_says_so) {
  const std::string body = R"({"id":"evt_1","created":"yesterday"})";
  EXPECT_EQ(deliver(body).what, outcome::journaled);
  EXPECT_EQ(log.count("webhook_time_unread source=payments event_id=evt_1 time=yesterday"), 1u);
  EXPECT_EQ(counters.value("settle_webhook_times_unread_total", {{"source", "payments"}}), 1);
  EXPECT_EQ(deliver(R"({"id":"evt_2"})").what, outcome::journaled);
  EXPECT_EQ(deliver(payment("evt_3", "t", "k")).what, outcome::journaled);
  EXPECT_EQ(log.count("webhook_time_unread"), 1u);
  EXPECT_EQ(counters.value("settle_webhook_times_unread_total", {{"source", "payments"}}), 1);
  for (int i = 0; i < 100; ++i) deliver(body);
  EXPECT_LE(log.count("webhook_time_unread"), 5u);
  EXPECT_EQ(counters.value("settle_webhook_times_unread_total", {{"source", "payments"}}), 101);
}

// Proves A3: stale by the instant, however the provider writes it
TEST_P(webhook_inbox, compares_times_that_are_written_with_offsets_or_in_milliseconds) {
  auto newest = payments();
  newest.ignore_stale = true;
  const webhook::inbox to(newest);
  const auto at = [](const std::string& id, const std::string& time) {
    return R"({"id":")" + id + R"(","created":)" + time + R"(,"data":{"object":{"id":"k"}}})";
  };
  EXPECT_EQ(apply(to, *db, at("a", R"("2021-02-25T12:00:00+02:00")"), log_effect).what, outcome::applied);
  EXPECT_EQ(apply(to, *db, at("b", R"("2021-02-25T09:59:59Z")"), log_effect).what, outcome::stale);
  EXPECT_EQ(apply(to, *db, at("c", R"("2021-02-25T11:59:59+02:00")"), log_effect).what, outcome::stale);
  EXPECT_EQ(apply(to, *db, at("d", "1614247199999"), log_effect).what, outcome::stale);
  EXPECT_EQ(apply(to, *db, at("e", "1614247200001"), log_effect).what, outcome::applied);
  EXPECT_EQ(log.count("webhook_time_unread"), 0u);
}

// Proves A3: the signature is taken over the id without blanks around it, so they make no other event
TEST_P(webhook_inbox, a_recorded_delivery_with_blanks_around_its_id_is_a_duplicate) {
  const webhook::inbox to(webhook::standard("crm", {"whsec_" + test::to_base64("key of the tests")}));
  const std::string body = "{}";
  const auto signature = test::standard_signature("key of the tests", "msg_1", time.now(), body);
  const auto send = [&](const std::string& id) {
    return to.apply(*db,
                    {.headers = {{"webhook-id", id},
                                 {"webhook-timestamp", test::seconds_of(time.now())},
                                 {"webhook-signature", signature}},
                     .body = body},
                    log_effect);
  };
  EXPECT_EQ(send("msg_1").what, outcome::applied);
  for (const auto* id : {"msg_1 ", " msg_1", "\tmsg_1\t"}) EXPECT_EQ(send(id).what, outcome::duplicate) << id;
  EXPECT_EQ(effects_of("msg_1"), 1);
}

// Proves A3: ids of two sources have nothing to do with each other
TEST_P(webhook_inbox, tells_sources_apart) {
  auto other = payments();
  other.name = "others";
  const auto body = payment("evt_1", "t", "k");
  EXPECT_EQ(apply(body).what, outcome::applied);
  EXPECT_EQ(apply(webhook::inbox(other), *db, body, log_effect).what, outcome::applied);
  EXPECT_EQ(effects_of("evt_1"), 2);
}

// Proves A3: fifty deliveries of one event at once
TEST_P(webhook_inbox, fifty_deliveries_of_one_event_at_once_have_one_effect) {
  const auto body = payment("evt_1", "t", "order-1");
  std::map<outcome, std::atomic<int>> seen;
  for (const auto one : {outcome::applied, outcome::journaled, outcome::duplicate, outcome::unavailable})
    seen[one] = 0;
  const auto storm = [&](auto&& send) {
    std::latch together(50);
    std::vector<std::jthread> senders;
    for (int i = 0; i < 50; ++i)
      senders.emplace_back([&] {
        together.arrive_and_wait();
        ++seen.at(send().what);
      });
  };
  storm([&] { return apply(body, pay); });
  EXPECT_EQ(seen[outcome::applied], 1);
  EXPECT_EQ(seen[outcome::duplicate] + seen[outcome::unavailable], 49);
  EXPECT_EQ(number("select count(*) from payments"), 1);
  EXPECT_EQ(published(), 1);
  storm([&] { return deliver(payment("evt_2", "t", "order-1")); });
  EXPECT_EQ(seen[outcome::journaled], 1);
  EXPECT_EQ(seen[outcome::unavailable], 0);
  EXPECT_EQ(number("select count(*) from " + table("webhook_events")), 2);
}

// A total that is read and written back: without a lock on the key two of them would read the same. Proves A3
TEST_P(webhook_inbox, events_of_one_key_are_applied_one_at_a_time) {
  auto tx = db->begin();
  tx.execute("create table totals (amount integer not null)");
  tx.execute("insert into totals (amount) values (0)");
  tx.commit();
  const auto add = [](const received& event, transaction& in) {
    const auto before = in.execute("select amount from totals")[0][0].integer();
    log_effect(event, in);  // and other work between
    in.execute("update totals set amount = $1", {before + 1});
    return answer::done;
  };
  constexpr int threads = 6, each = 8;
  {
    std::vector<std::jthread> senders;
    for (int t = 0; t < threads; ++t)
      senders.emplace_back([&, t] {
        for (int i = 0; i < each; ++i)
          EXPECT_EQ(apply(payment(std::to_string(t) + "-" + std::to_string(i), "t", "order-1"), add).status,
                    200);
      });
  }
  EXPECT_EQ(effects(), threads * each);
  EXPECT_EQ(number("select amount from totals"), threads * each);
}

INSTANTIATE_TEST_SUITE_P(databases, webhook_inbox, ::testing::Values(dialect::sqlite, dialect::postgres),
                         test::dialect_name);

}  // namespace
}  // namespace settle

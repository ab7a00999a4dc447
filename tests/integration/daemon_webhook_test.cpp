// Webhooks at the daemon: the real program, signed requests, and what arrives at the broker.
#include <signal.h>

#include <boost/json.hpp>
#include <regex>

#include "config/option.hpp"
#include "support/webhook_daemon.hpp"

namespace settle::daemon {
namespace {

using test::eventually;
using test::outcome;
using test::post;
using test::program;

class daemon_webhooks : public test::webhook_daemon {
 protected:
  outcome print_config() { return start({"--print-config"})->end(); }

  // With this file the daemon says why it does not start, and nothing else.
  void expect_refused(const std::string& toml, const std::string& why) {
    configure(toml);
    const auto done = start()->end();
    EXPECT_EQ(done.code, 2) << toml;
    EXPECT_NE(done.err.find("settled: " + dir.file("settled.toml") + why), std::string::npos) << done.err;
    EXPECT_FALSE(std::filesystem::exists(dir.file("data"))) << "before anything was opened";
    expect_no_secret(done.err);
  }
};

// Proves A3, I8
TEST_F(daemon_webhooks, become_one_event_each_however_often_they_are_sent) {
  const auto running = start_ready();
  for (int i = 0; i < 2; ++i) {
    const auto stripe = send_stripe(*running, charge("evt_1"));
    EXPECT_EQ(stripe.status, 200);
    EXPECT_EQ(stripe.body, "");
    EXPECT_EQ(send_standard(*running, "msg_1", R"({"type":"contact.created","data":{"id":"c1"}})").status,
              200);
    EXPECT_EQ(send_gateway(*running, R"({"transaction":{"id":"t1"},"order":7})").status, 200);
  }
  EXPECT_EQ(send_stripe(*running, charge("evt_2")).status, 200);
  ASSERT_TRUE(arrive("payments", 2) && arrive("crm", 1) && arrive("gateway", 1)) << running->log();
  EXPECT_TRUE(shows(*running, "settle_webhooks_total{source=\"stripe\",outcome=\"duplicate\"} 1"));
  EXPECT_EQ(messages("payments"), (std::vector{"charge.succeeded ch_7 " + charge("evt_1"),
                                               "charge.succeeded ch_7 " + charge("evt_2")}));
  EXPECT_EQ(messages("crm"),
            std::vector{std::string(R"(contact.created c1 {"type":"contact.created","data":{"id":"c1"}})")});
  EXPECT_EQ(messages("gateway"),
            std::vector{std::string(R"(webhook 7 {"transaction":{"id":"t1"},"order":7})")});
  EXPECT_TRUE(shows(*running, "settle_webhook_events_total{source=\"stripe\",outcome=\"applied\"} 2"));
  const auto done = running->end(SIGTERM);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.err.find("drain_cancelled"), std::string::npos) << done.err;
  expect_no_secret(done.err);
}

// Proves A3
TEST_F(daemon_webhooks, are_answered_by_what_they_are) {
  const auto running = start_ready();
  const auto forged = send_stripe(*running, charge("evt_1"), "another secret");
  EXPECT_EQ(forged.status, 401);
  EXPECT_EQ(forged.body, "") << "the sender learns nothing";
  EXPECT_EQ(post(running->port(), "/webhooks/stripe", "", charge("evt_1")).status, 401) << "unsigned";
  EXPECT_EQ(send_stripe(*running, "{}").status, 400) << "rightly signed, without an id";
  EXPECT_EQ(send_gateway(*running, std::string(20 * 1024 + 1, ' ')).status, 413);
  const auto large = R"({"transaction":{"id":"t1"},"more":")" + std::string(19 * 1024, 'x') + "\"}";
  EXPECT_EQ(send_gateway(*running, large).status, 200) << "larger than http.body_bytes_max";
  const auto unknown = post(running->port(), "/webhooks/paypal", "", "{}");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(boost::json::parse(unknown.body).at("code").as_string(), "webhook_source_unknown");
  EXPECT_EQ(test::get(running->port(), "/webhooks/stripe").status, 405);
  EXPECT_TRUE(running->logs("webhook_not_taken source=stripe outcome=refused")) << running->log();
  EXPECT_TRUE(arrive("gateway", 1));
  EXPECT_TRUE(messages("payments").empty());
  expect_no_secret(running->log());
}

// Proves A3
TEST_F(daemon_webhooks, survive_the_death_of_the_daemon_that_has_answered) {
  constexpr int kills = 8;
  for (int i = 0; i < kills; ++i) {
    const auto running = start_ready({"--relay-lease-ttl", "500ms"});
    ASSERT_EQ(send_stripe(*running, charge("evt_" + std::to_string(i))).status, 200);
    running->end(SIGKILL);  // at once: it may have been forwarded, or not
  }
  const auto running = start_ready();
  // A relay that was killed may repeat a message, under its id.
  const auto events = [&] {
    return sqlite::open(dir.file("data/broker.db"))
        ->read()
        .execute("select count(distinct event_id) from broker_messages")[0][0]
        .integer();
  };
  EXPECT_TRUE(test::eventually([&] { return events() == kills; })) << running->log();
  for (int i = 0; i < kills; ++i)
    EXPECT_EQ(send_stripe(*running, charge("evt_" + std::to_string(i))).status, 200);
  EXPECT_TRUE(shows(*running, "settle_webhooks_total{source=\"stripe\",outcome=\"duplicate\"} 8"));
  EXPECT_TRUE(shows(*running, "settle_outbox_pending_events 0"));
  EXPECT_EQ(events(), kills);
}

// Proves A3, D7
TEST_F(daemon_webhooks, that_are_over_are_swept_and_told_by_their_time_if_they_come_again) {
  const auto running = start_ready({"--sweep-interval", "100ms"});
  EXPECT_EQ(send_stripe(*running, charge("evt_1")).status, 200);
  ASSERT_TRUE(arrive("payments", 1));
  {
    const auto db = sqlite::open(dir.file("data/settle.db"));
    auto tx = db->begin();
    tx.execute("update settle_webhook_events set received_at = 2000000, finished_at = 2000000");  // in 1970
    tx.commit();
  }
  EXPECT_TRUE(shows(*running, "settle_swept_total{what=\"webhooks\"} 1"));
  EXPECT_EQ(send_stripe(*running, charge("evt_1")).status, 200);
  EXPECT_TRUE(shows(*running, "settle_webhooks_total{source=\"stripe\",outcome=\"too_late\"} 1"));
  const auto now = test::seconds_of(environment{}.now());
  EXPECT_EQ(send_stripe(*running, charge("evt_2", now)).status, 200);
  EXPECT_TRUE(arrive("payments", 2));
  EXPECT_EQ(messages("payments").back(), "charge.succeeded ch_7 " + charge("evt_2", now));
}

TEST_F(daemon_webhooks, have_their_tables_in_the_printed_configuration_and_their_keys_nowhere) {
  const auto shown = print_config();
  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto has = [&](const std::string& setting, const std::string& origin) {
    const std::regex line("\n" + setting + " +# " + origin + "\n");
    EXPECT_TRUE(std::regex_search(shown.out, line)) << setting << "\n" << shown.out;
  };
  has("topic = \"payments\"", ".*settled.toml:5");
  has("keys_env = \"STRIPE_WEBHOOK_SECRET\"", ".*settled.toml:4");
  has("event_id = \"json:id\"", "default");
  has("event_id = \"header:webhook-id\"", "default");
  has("topic = \"crm\"", "default");
  has("header = \"X-Gateway-Signature\"", ".*settled.toml:14");
  EXPECT_NE(shown.out.find("\n[webhook.gateway]\n"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("# keys: 2 (hidden)\n"), std::string::npos) << shown.out;
  expect_no_secret(shown.out);
  configure(shown.out);
  const auto again = print_config();
  EXPECT_EQ(again.code, 0) << again.err << "what it prints is a file that it reads";
  expect_no_secret(again.out);
}

TEST_F(daemon_webhooks, are_refused_with_line_and_reason_if_their_table_is_wrong) {
  const std::string head = "[webhook.stripe]\nscheme = \"stripe\"\n";
  const std::string whole = head + "keys_env = \"STRIPE_WEBHOOK_SECRET\"\n";
  expect_refused(whole + "topc = \"x\"\n",
                 ":4: unknown key 'webhook.stripe.topc'; did you mean 'webhook.stripe.topic'?");
  expect_refused(head + "keys = \"" + std::string(test::stripe_secret) + "\"\n",
                 ":3: unknown key 'webhook.stripe.keys'; did you mean 'webhook.stripe.keys_env'?");
  expect_refused("[webhok.stripe]\nscheme = \"stripe\"\n",
                 ":2: unknown key 'webhok.stripe.scheme'; did you mean 'webhook.stripe.scheme'?");
  expect_refused("[webhook]\nscheme = \"stripe\"\n", ":2: 'scheme' stands in the table of a source");
  expect_refused("[webhook.\"a/b\"]\nscheme = \"stripe\"\n",
                 ":2: the name of a source in [webhook.NAME] is 1 to");
  expect_refused("\n[webhook.stripe]\n", ":2: webhook.stripe.scheme is missing: stripe, standard or hmac");
  expect_refused("[webhook.x]\nscheme = \"strpe\"\n",
                 ":2: webhook.x.scheme must be stripe, standard or hmac, got 'strpe'");
  expect_refused(head, ":2: webhook.stripe.keys_env is missing");
  expect_refused(head + "keys_env = \"NOWHERE\"\n",
                 ":3: webhook.stripe.keys_env names a variable that is not set");
  expect_refused(head + "keys_env = \"" + std::string(test::stripe_secret) + "\"\n",
                 ":3: webhook.stripe.keys_env names a variable that is not set");
  expect_refused(head + "keys_file = \"" + std::string(test::stripe_secret) + "\"\n",
                 ":3: webhook.stripe.keys_file names a file that cannot be read");
  test::write_file(dir.file("empty.keys"), "\n\n");
  expect_refused(head + "keys_file = \"FOLDER/empty.keys\"\n",
                 ":3: webhook.stripe.keys_file names something that holds no key");
  expect_refused(head + "keys_file = \"FOLDER\"\n",
                 ":3: webhook.stripe.keys_file names a file that cannot be read");
  expect_refused(whole + "key = \"" + std::string(test::stripe_secret) + "\"\n",
                 ":4: webhook.stripe.key must be json:MEMBER or header:NAME");
  expect_refused(whole + "event_id = \"header:X-Id\"\n", ":2: webhook.stripe: ");
  expect_refused(whole + "header = \"X-Id\"\n",
                 ":4: webhook.stripe.header means nothing with scheme = \"stripe\"");
  expect_refused(whole + "tolerance = 5\n", ":4: webhook.stripe.tolerance is written in quotes");
  expect_refused(whole + "tolerance = \"2d\"\n", ":4: webhook.stripe.tolerance must be 1s to 1d, got '2d'");
  expect_refused(whole + "ignore_stale = \"yes\"\n",
                 ":4: webhook.stripe.ignore_stale is written without quotes");
  expect_refused(whole + "topic = \"\"\n", ":4: webhook.stripe.topic must be text of 1 to 255 bytes");
  expect_refused("[webhook.g]\nscheme = \"hmac\"\nkeys_env = \"CRM_KEYS\"\n",
                 ":2: webhook.g.event_id is missing");
  expect_refused(
      "[webhook.g]\nscheme = \"hmac\"\nkeys_env = \"CRM_KEYS\"\nevent_id = \"json:id\"\nprefix = \"sha1=\"\n",
      ":2: webhook.g: ");
  expect_refused("[webhook.c]\nscheme = \"standard\"\nkeys_env = \"STRIPE_WEBHOOK_SECRET\"\n",
                 ":2: webhook.c: ");
}

TEST_F(daemon_webhooks, options_read_back_what_they_show) {
  for (const auto& one : config::webhook_options())
    for (const auto* scheme : {"stripe", "standard", "hmac"}) {
      const auto defaults = config::webhook_defaults("x", scheme);
      config::webhook_settings to;
      EXPECT_EQ(assign(to, one, shown(defaults, one)), std::nullopt) << one.name;
      EXPECT_EQ(shown(to, one), shown(defaults, one)) << one.name;
      EXPECT_FALSE(one.meaning.empty()) << one.name;
    }
}

}  // namespace
}  // namespace settle::daemon

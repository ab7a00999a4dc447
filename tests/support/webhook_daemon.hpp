// A settled that takes webhooks, and providers that sign what they send it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "settle/sqlite.hpp"
#include "support/daemon_process.hpp"
#include "support/temp_dir.hpp"
#include "support/webhook_signer.hpp"

namespace settle::test {

inline constexpr std::string_view stripe_secret = "whsec_hunter2_of_stripe";
inline constexpr std::string_view standard_secret = "hunter2_of_standard_bytes";
inline constexpr std::string_view gateway_secret = "hunter2 of the gateway";

// Three sources; keys from variables and from a file, with blanks around them.
inline constexpr std::string_view three_sources = R"(
[webhook.stripe]
scheme = "stripe"
keys_env = "STRIPE_WEBHOOK_SECRET"
topic = "payments"

[webhook.crm]
scheme = "standard"
keys_env = "CRM_KEYS"

[webhook.gateway]
scheme = "hmac"
keys_file = "FOLDER/gateway.keys"
header = "X-Gateway-Signature"
prefix = "v1="
event_id = "json:transaction.id"
key = "json:order"
body_bytes_max = "20KiB"
)";

class webhook_daemon : public ::testing::Test {
 protected:
  webhook_daemon() {
    write_file(dir.file("gateway.keys"), "an older key\n \t" + std::string(gateway_secret) + " \t\r\n \t\n");
    configure(three_sources);
  }

  // FOLDER stands for the test's own.
  void configure(std::string_view toml) {
    std::string text(toml);
    for (auto at = text.find("FOLDER"); at != std::string::npos; at = text.find("FOLDER"))
      text.replace(at, 6, dir.path());
    write_file(dir.file("settled.toml"), text);
  }

  static std::vector<std::string> secrets() {
    return {"STRIPE_WEBHOOK_SECRET=" + std::string(stripe_secret),
            "CRM_KEYS=whsec_" + to_base64(standard_secret) + " \n whsec_" + to_base64("the next one")};
  }

  std::unique_ptr<program> start(std::vector<std::string> more = {},
                                 std::vector<std::string> variables = {}) {
    more.insert(more.begin(), {"--config", dir.file("settled.toml"), "--data", dir.file("data"), "--listen",
                               "127.0.0.1:0"});
    for (const auto& one : secrets()) variables.push_back(one);
    return std::make_unique<program>(SETTLED, more, dir.file("settled" + std::to_string(++started_)),
                                     surroundings{.variables = variables});
  }

  std::unique_ptr<program> start_ready(const std::vector<std::string>& more = {},
                                       const std::vector<std::string>& variables = {}) {
    auto running = start(more, variables);
    EXPECT_TRUE(running->logs(" info ready ")) << running->log();
    return running;
  }

  // As Stripe would say it; `created` is when it happened.
  static std::string charge(const std::string& id, const std::string& created = "1") {
    return R"({"id":")" + id + R"(","type":"charge.succeeded","created":)" + created +
           R"(,"data":{"object":{"id":"ch_7"}}})";
  }
  static answer send_stripe(const program& to, const std::string& body,
                            std::string_view secret = stripe_secret) {
    const auto signature = stripe_signature(secret, system_time().now(), body);
    return post(to.port(), "/webhooks/stripe",
                "Stripe-Signature: " + signature + "\r\nContent-Type: application/json\r\n", body);
  }
  static answer send_standard(const program& to, const std::string& id, const std::string& body) {
    const auto now = system_time().now();
    return post(to.port(), "/webhooks/crm",
                "webhook-id: " + id + "\r\nwebhook-timestamp: " + seconds_of(now) +
                    "\r\nwebhook-signature: " + standard_signature(standard_secret, id, now, body) + "\r\n",
                body);
  }
  static answer send_gateway(const program& to, const std::string& body) {
    return post(to.port(), "/webhooks/gateway",
                "X-Gateway-Signature: v1=" + to_hex(code_of(gateway_secret, body)) + "\r\n", body);
  }

  // What the broker holds of a topic: type, key and payload of each message.
  std::vector<std::string> messages(const std::string& topic) const {
    const auto file = sqlite::open(dir.file("data/broker.db"));
    const auto rows = file->read().execute(
        "select event_type || ' ' || key || ' ' || cast(payload as text) from broker_messages m "
        "join broker_topics t on t.topic = m.topic where t.name = $1 order by position",
        {topic});
    std::vector<std::string> found;
    for (std::size_t i = 0; i < rows.size(); ++i) found.push_back(rows[i][0].text());
    return found;
  }
  bool arrive(const std::string& topic, std::size_t count) const {
    return eventually([&] { return messages(topic).size() >= count; });
  }

  static std::string metrics_of(const program& running) { return get(running.port(), "/metrics").body; }
  static bool shows(const program& running, const std::string& line) {
    std::string page;
    const bool so = eventually([&] {
      page = metrics_of(running);
      return page.find("\n" + line + "\n") != std::string::npos;
    });
    EXPECT_TRUE(so) << page;
    return so;
  }

  static void expect_no_secret(const std::string& text) {
    for (const auto& secret :
         {std::string(stripe_secret), to_base64(standard_secret), std::string(gateway_secret)})
      EXPECT_EQ(text.find(secret), std::string::npos) << text;
  }

  temp_dir dir;

 private:
  int started_ = 0;
};

}  // namespace settle::test

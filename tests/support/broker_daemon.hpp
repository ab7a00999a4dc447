// settled with a service `orders` whose broker `main` is a server, and settle, which looks into it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "settle/driver/broker.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"
#include "support/daemon_process.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {

class broker_daemon : public ::testing::Test {
 protected:
  // Lines of the table [broker.main], but for its url.
  virtual std::string settings() const = 0;
  // The same broker as the daemon's.
  virtual std::unique_ptr<broker> open() const = 0;

  // It may have a password, so it comes from a file.
  std::unique_ptr<program> start(const std::string& url) {
    write_file(dir.file("url"), url + "\n");
    write_file(dir.file("settled.toml"), "[broker.main]\nurl_file = \"" + dir.file("url") + "\"\n" +
                                             settings() + "[service.orders]\ndatabase = \"" +
                                             dir.file("orders.db") + "\"\n");
    return std::make_unique<program>(SETTLED,
                                     std::vector<std::string>{"--config", dir.file("settled.toml"), "--data",
                                                              dir.file("data"), "--listen", "127.0.0.1:0"},
                                     dir.file("settled"), surroundings{});
  }
  static void expect_ready(const program& running) {
    EXPECT_TRUE(eventually([&] { return get(running.port(), "/readyz").status == 200; })) << running.log();
  }

  outcome settle(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--config", dir.file("settled.toml")});
    return program(SETTLE_CLI, std::move(arguments), dir.file("settle"), {}).end();
  }

  std::unique_ptr<subscription> listen() {
    at_ = open();
    return at_->subscribe({.group = "warehouse", .topics = {"orders"}});
  }

  void publish(int number) const {
    const auto db = sqlite::open(dir.file("orders.db"));
    auto tx = db->begin();
    settle::publish(tx, {.topic = "orders", .type = "placed", .key = "k", .payload = std::to_string(number)});
    tx.commit();
  }

  static std::vector<std::string> arrived(subscription& at, std::size_t count) {
    std::vector<std::string> payloads;
    EXPECT_TRUE(eventually([&] {
      for (auto& one : at.fetch(100).deliveries) payloads.push_back(one.content.payload);
      return payloads.size() >= count;
    })) << payloads.size();
    return payloads;
  }

  temp_dir dir;

 private:
  std::unique_ptr<broker> at_;
};

}  // namespace settle::test

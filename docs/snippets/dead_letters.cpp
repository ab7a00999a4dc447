// The warehouse that docs/operating/dead_letters.md speaks of: its consumer gives orders up, and later runs
// replays.
//
// Usage: dead_letters FOLDER            a warehouse that has given up eight orders; ends when they are dead
// letters
//        dead_letters FOLDER mended     the same warehouse after the mistake was mended; runs until it is
//        stopped
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "settle/consume.hpp"
#include "settle/dead_letter.hpp"
#include "settle/failure.hpp"
#include "settle/publish.hpp"
#include "settle/relay.hpp"
#include "settle/service.hpp"
#include "settle/sqlite.hpp"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t orders = 8;

void place_orders(settle::database& shop) {
  auto tx = shop.begin();
  for (std::size_t n = 1; n <= orders; ++n)
    settle::publish(tx, {.topic = "orders",
                         .type = "order.placed",
                         .key = std::to_string(40 + n),
                         .payload = "{\"article\": \"gone\"}"});
  tx.commit();
}

void run(const std::string& folder, bool mended) {
  std::filesystem::create_directories(folder);
  const auto service = settle::sqlite::open(folder + "/settle.db");
  const auto broker = settle::sqlite::open_broker(folder + "/broker.db");
  settle::migrate(*service);
  if (!mended) place_orders(*service);

  settle::relay relay(*service, broker->publishing());
  settle::consumer consumer(*service, *broker, {.name = "warehouse", .retry_wait = 1ms});
  consumer.on("orders", "order.placed", [&](const settle::message&, settle::transaction&) {
    if (!mended) throw settle::handler_failed(settle::failure_class::poison, "no such article");
  });
  const settle::background relaying(relay);
  const settle::background consuming(consumer);
  const auto commits = service->watch();
  while (mended || settle::dead_letters(*service).size() < orders) commits->wait(500ms, {});
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: dead_letters FOLDER [mended]\n");
    return 2;
  }
  run(argv[1], argc > 2 && std::string(argv[2]) == "mended");
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "dead_letters: %s\n", e.what());
  return 1;
}

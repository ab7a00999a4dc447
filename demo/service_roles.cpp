#include "service_roles.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "compose/service_broker.hpp"
#include "compose/service_database.hpp"
#include "orders.hpp"
#include "services.hpp"
#include "settle/driver/broker.hpp"
#include "settle/error.hpp"
#include "settle/service.hpp"
#include "storm_broker.hpp"
#include "termination.hpp"

namespace storm {
namespace {

using std::chrono::milliseconds;

constexpr auto pause_after_failure = milliseconds(20);

// A line that is cut without a word is given up early, so that the storm goes on soon after it is mended.
std::unique_ptr<settle::database> open(const shop& of) {
  return settle::compose::open_database(of.database, {.busy_timeout = std::chrono::seconds(2),
                                                      .connections_max = 4,
                                                      .connect_timeout = std::chrono::seconds(1),
                                                      .statement_timeout = std::chrono::seconds(3)});
}

bool may_pass(const settle::error& e) {
  return e.retryable() || e.outcome_unknown() || e.code() == settle::errc::store_full;
}

void place_at_last(settle::database& db, const order& what) {
  while (true) try {
      return place(db, what);
    } catch (const settle::error& e) {
      if (e.code() == settle::errc::constraint_violated) return;  // it was committed before
      if (!may_pass(e)) throw;
      std::this_thread::sleep_for(pause_after_failure);
    }
}

void wait_until_due(const settings& of, int number) {
  if (of.seconds == 0) return;
  const std::chrono::system_clock::time_point began{milliseconds(of.began_ms)};
  std::this_thread::sleep_until(began + milliseconds(of.seconds * std::int64_t{1000} * number / of.orders));
}

void produce_for(const settings& of, const services& all, std::size_t shop, int index) {
  const auto db = open(all.shops[shop]);
  const auto step = static_cast<int>(all.shops.size());
  for (int number = static_cast<int>(shop) + index * step; number < of.orders; number += producers * step) {
    wait_until_due(of, number);
    place_at_last(*db, make_shop_order(of, all, number));
  }
}

}  // namespace

void prepare_services(const settings& of) {
  const auto all = read_services(of.config);
  const auto make = [](const shop& one, void (*tables)(settle::database&)) {
    try {
      tables(*open(one));
    } catch (const settle::error& e) {
      throw std::runtime_error(fmt::format(
          "service {}: {}\nA storm needs databases without tables of its own in them", one.name, e.what()));
    }
  };
  for (const auto& one : all.shops) make(one, create_orders);
  make(all.warehouse, create_shipments);
  prepare_group(*settle::compose::open_broker(all.broker.url, all.broker.options), all.broker.url);
}

void run_service_producer(const settings& of, int index) {
  const auto all = read_services(of.config);
  std::vector<std::jthread> threads;
  for (std::size_t shop = 0; shop < all.shops.size(); ++shop)
    threads.emplace_back([&, shop] {
      try {
        produce_for(of, all, shop, index);
      } catch (const std::exception& e) {
        fmt::print(stderr, "{}: {}\n", all.shops[shop].name, e.what());
        ::_exit(2);
      }
    });
}

void run_daemon(const settings& of, int index) {
  const auto file = daemon_file(of, index);
  const auto folder = fmt::format("{}/settled-{}", of.data, index + 1);
  ::execl(of.settled.c_str(), "settled", "--config", file.c_str(), "--data", folder.c_str(), "--listen",
          "127.0.0.1:0", nullptr);
  throw std::runtime_error(of.settled + ": " + std::strerror(errno));
}

void run_service_consumer(const settings& of, int) {
  const termination asked;
  const auto all = read_services(of.config);
  const auto db = open(all.warehouse);
  const auto broker = settle::compose::open_broker(all.broker.url, all.broker.options);
  settle::consumer warehouse(*db, *broker, {.name = "warehouse"});
  ship_orders(warehouse);
  settle::background loop(warehouse);
  asked.wait();
}

}  // namespace storm

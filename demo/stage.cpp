#include "stage.hpp"

#include <set>

#include "compose/service_broker.hpp"
#include "compose/service_database.hpp"
#include "roles.hpp"
#include "service_roles.hpp"
#include "services.hpp"
#include "settle/driver/broker.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#include "storm_broker.hpp"

namespace storm {
namespace {

// Numbers of a server's sequence have gaps, those of a file none.
constexpr settle::query count_effects{"storm.count_effects",
                                      "select coalesce(max(id), 0) from settle_effects",
                                      "select count(*) from settle.effects"};

}  // namespace

stage::stage(const settings& of) {
  if (of.config.empty()) {
    prepare(of);
    shops_.push_back({"", settle::sqlite::open(of.data + "/orders.db")});
    warehouse_.db = settle::sqlite::open(of.data + "/warehouse.db");
    broker_ = open_storm_broker(of);
    broker_url_ = of.broker;
    return;
  }
  prepare_services(of);
  const auto all = read_services(of.config);
  const auto open = [](const shop& one) {
    return settle::compose::open_database(one.database, {.connections_max = 1,
                                                         .connect_timeout = std::chrono::seconds(1),
                                                         .statement_timeout = std::chrono::seconds(1)});
  };
  for (const auto& one : all.shops) shops_.push_back({one.name, open(one)});
  warehouse_.db = open(all.warehouse);
  broker_ = settle::compose::open_broker(all.broker.url, all.broker.options);
  broker_url_ = all.broker.url;
}

void stage::look() {
  const auto count = [](watched& of) {
    try {
      of.noted = of.db->read().execute(count_effects)[0][0].integer();
    } catch (const settle::error& e) {
      if (!e.retryable()) throw;
    }
  };
  for (auto& one : shops_) count(one);
  count(warehouse_);
}

std::int64_t stage::committed() const {
  std::int64_t all = 0;
  for (const auto& one : shops_) all += one.noted;
  return all;
}

std::vector<stage::shop_count> stage::shops() const {
  std::vector<shop_count> all;
  for (const auto& one : shops_) all.push_back({one.name, one.noted});
  return all;
}

settle::verify_report stage::verify() const {
  settle::verify_input input{.services = {}, .broker = broker_->inspection(), .examples_max = 1'000'000};
  for (const auto& one : shops_) input.services.push_back(one.db.get());
  input.services.push_back(warehouse_.db.get());
  return settle::verify(input);
}

void stage::clean_up() { remove_group(*broker_, broker_url_); }

std::optional<std::int64_t> stage::extra_copies() const {
  if (broker_->inspection()->log() == nullptr) return std::nullopt;
  std::int64_t messages = 0;
  std::set<std::string> distinct;
  broker_->inspection()->log()->scan([](std::string_view, std::string_view) {},
                                     [&](const settle::kept_message& one) {
                                       ++messages;
                                       distinct.emplace(one.id);
                                     });
  return messages - static_cast<std::int64_t>(distinct.size());
}

}  // namespace storm

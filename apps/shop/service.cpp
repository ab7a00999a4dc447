#include "service.hpp"

#include <filesystem>
#include <fstream>
#include <optional>

#include "checkout/checkout.hpp"
#include "gateway/gateway.hpp"
#include "notification/notification.hpp"
#include "order/order.hpp"
#include "payment/payment.hpp"
#include "settle/error.hpp"
#include "settle/http_server.hpp"
#include "settle/lock.hpp"
#include "settle/relay.hpp"
#include "stores.hpp"
#include "sweeper.hpp"
#include "warehouse/warehouse.hpp"

namespace shop {
namespace {

// What the services' own tables are; each knows its own.
std::string_view tables_of(const std::string& service) {
  if (service == "order") return order_tables;
  if (service == "checkout") return checkout_tables;
  if (service == "payment") return payment_tables;
  if (service == "warehouse") return warehouse_tables;
  if (service == "notification") return notification_tables;
  if (service == "gateway") return gateway_tables;
  throw settle::error(settle::errc::invalid_argument, "there is no service " + service);
}

std::string port_file(const config& of, const std::string& service) {
  return of.folder + "/" + service + ".port";
}

// Whole or not at all: others read it at any time.
void note_port(const config& of, const std::string& service, std::uint16_t port) {
  const auto file = port_file(of, service);
  std::ofstream(file + ".new") << port << '\n';
  std::filesystem::rename(file + ".new", file);
}

}  // namespace

void create_tables(settle::database& db, const std::string& service) {
  settle::migrate(db);
  // Two processes that start at once must not create one table twice.
  settle::locks locks(db);
  const auto alone = locks.acquire("shop_tables", std::chrono::seconds(30));
  auto tx = db.begin();
  tx.execute_script(tables_of(service));
  tx.commit();
}

std::unique_ptr<service> make_service(const std::string& name, const surroundings& with) {
  if (name == "order") return std::make_unique<order_service>(with);
  if (name == "checkout") return std::make_unique<checkout_service>(with);
  if (name == "payment") return std::make_unique<payment_service>(with);
  if (name == "warehouse") return std::make_unique<warehouse_service>(with);
  if (name == "notification") return std::make_unique<notification_service>(with);
  if (name == "gateway") return std::make_unique<gateway_service>(with);
  throw settle::error(settle::errc::invalid_argument, "there is no service " + name);
}

std::optional<std::string> user_of(const settle::http::request& asked) {
  const auto found = asked.headers.find("X-User");
  if (!found || found->empty()) return std::nullopt;
  return std::string(*found);
}

settle::http::response who_are_you(const settle::http::request& asked) {
  return settle::http::problem(401, "caller_unknown", "this request needs an authenticated caller",
                               asked.path);
}

settle::consumer_options listening(const std::string& name, std::vector<std::string> topics) {
  return {.name = name,
          .topics = std::move(topics),
          .retry_wait = std::chrono::milliseconds(50),
          .retry_wait_max = std::chrono::seconds(5),
          .attempts_max = 8,
          .outage_wait_max = std::chrono::seconds(2)};
}

std::uint16_t port_of(const config& of, const std::string& service) {
  if (const auto set = of.of(service).port; set != 0) return set;
  std::uint16_t port = 0;
  std::ifstream(port_file(of, service)) >> port;
  return port;
}

struct running_service::parts {
  parts(const config& with, std::string service_name, settle::broker& broker, const settle::environment& env)
      : of(with), name(std::move(service_name)), db(open_database(of.of(name).database, env)) {
    create_tables(*db, name);
    what = make_service(name, {*db, broker, of});
    relay.emplace(*db, broker.publishing(),
                  settle::relay_options{.source = "shop/" + name, .lease_ttl = std::chrono::seconds(3)});
    loops.push_back(std::make_unique<settle::background>(*relay));
    sweeping.emplace(*db);
    loops.push_back(std::make_unique<settle::background>(*sweeping));
    for (auto* one : what->loops()) loops.push_back(std::make_unique<settle::background>(*one));
    settle::http::router routes;
    what->add_routes(routes);
    server.emplace(std::move(routes), settle::http::server_options{.port = of.of(name).port, .env = env});
    note_port(of, name, server->port());
  }

  void stop() {
    if (server) server->drain(std::chrono::seconds(5));
    for (auto& one : loops) one->ask_to_stop();
    for (auto& one : loops) one->stop();
    loops.clear();
  }

  config of;
  std::string name;
  std::unique_ptr<settle::database> db;
  std::unique_ptr<service> what;
  std::optional<settle::relay> relay;
  std::optional<sweeper> sweeping;
  std::vector<std::unique_ptr<settle::background>> loops;
  std::optional<settle::http::server> server;
};

running_service::running_service(const config& of, const std::string& name, settle::broker& broker,
                                 const settle::environment& env)
    : parts_(std::make_unique<parts>(of, name, broker, env)) {}
running_service::~running_service() { stop(); }
void running_service::stop() { parts_->stop(); }
const std::string& running_service::name() const { return parts_->name; }
settle::database& running_service::db() { return *parts_->db; }
service& running_service::what() { return *parts_->what; }

}  // namespace shop

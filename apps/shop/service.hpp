// What the six services have in common: a database of their own, a relay, an HTTP API and loops in the
// background.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config.hpp"
#include "settle/broker.hpp"
#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "settle/http.hpp"
#include "settle/service.hpp"

namespace shop {

class service {
 public:
  virtual ~service() = default;
  virtual void add_routes(settle::http::router& to) = 0;
  // Beside the relay, which everybody has.
  virtual std::vector<settle::service*> loops() = 0;
  // What it listens to; null: nothing.
  virtual const settle::consumer* listener() const { return nullptr; }
};

// What a service is made with. References live as long as the service.
struct surroundings {
  settle::database& db;
  settle::broker& broker;
  const config& of;
};

// Makes Settle's tables and the service's own, if they are not there.
void create_tables(settle::database& db, const std::string& service);

std::unique_ptr<service> make_service(const std::string& name, const surroundings& with);

// The buyer, or whoever else asks, as the gateway in front of the shop has authenticated him: it sets X-User
// and lets nobody else do so.
std::optional<std::string> user_of(const settle::http::request& asked);
settle::http::response who_are_you(const settle::http::request& asked);

// Consumers of the shop do not wait long: a buyer does.
settle::consumer_options listening(const std::string& name, std::vector<std::string> topics);

// Where a service listens: its port in the configuration, or the one that it has noted. 0: it does not run.
std::uint16_t port_of(const config& of, const std::string& service);

// One service at work, from its constructor to stop() or its end.
class running_service {
 public:
  running_service(const config& of, const std::string& name, settle::broker& broker,
                  const settle::environment& env = {});
  ~running_service();

  // Takes no more requests, finishes what is under way, and leaves its leases.
  void stop();

  const std::string& name() const;
  settle::database& db();
  service& what();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace shop

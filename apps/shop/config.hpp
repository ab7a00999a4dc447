// What a shop is made of: where each service keeps its data and listens, and how patient it is. One file for
// all services, in JSON; what it leaves out has the default below.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "settle/environment.hpp"

namespace shop {

struct service_config {
  // A file, a postgresql:// URL or a libpq conninfo. Empty: <folder>/<name>.db
  std::string database = {};
  // 0: the system chooses one, and it is written into <folder>/<name>.port.
  std::uint16_t port = 0;
};

// How the stand-in of the payment gateway behaves. Parts of all charges, from 0 to 1; a payment method says
// it for one charge alone (see gateway/fate.hpp).
struct gateway_moods {
  std::uint64_t seed = 1;
  double declined = 0;     // payment.failed
  double silent = 0;       // authorised, and never heard of again
  double late = 0;         // the webhook comes after late_by
  double duplicated = 0;   // the webhook comes several times, also at the same time
  double forged = 0;       // somebody else sends one with a wrong signature as well
  double failing = 0;      // a call is answered with 500 before anything was done
  double lost_answer = 0;  // a call is done, and its answer is lost
  settle::duration late_by = std::chrono::seconds(3);
};

struct config {
  std::string folder = "shop-data";
  // A file, amqp://… or kafka://…. Empty: <folder>/broker.db, embedded
  std::string broker = {};
  std::map<std::string, service_config> services = {};
  // What the gateway signs its webhooks with.
  std::string webhook_secret = "whsec-shop-stand-in";
  // How long an order waits for its payment before it is cancelled and its stock goes back.
  settle::duration payment_window = std::chrono::minutes(15);
  // How long the warehouse keeps goods for an order that nobody has confirmed.
  settle::duration hold = std::chrono::hours(1);
  gateway_moods gateway = {};

  // With its default database.
  service_config of(const std::string& service) const;
  std::string broker_place() const;
};

// Every service, in the order in which they are started.
const std::vector<std::string>& service_names();

// Throws settle::error(invalid_argument) that names the member which is wrong.
config read_config(const std::string& text);
std::string write_config(const config& what);

}  // namespace shop

// The services of a daemon's file, as the storm sees them: `warehouse` ships what all others have ordered.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "workload.hpp"

namespace storm {

struct shop {
  std::string name;
  std::string database;
};

struct services {
  std::vector<shop> shops;  // every service but `warehouse`
  shop warehouse;
  settle::config::broker_settings broker;  // of them all
  std::chrono::milliseconds lease_max{};   // the longest of a relay or a member
};

// Throws if it cannot be read, or if there is no `warehouse`, or nobody who orders, or no common broker.
services read_services(const std::string& file);

// Writes DATA/settled.toml with so many shops and a warehouse, each with its own database, and returns its
// path. On SQLite these are files of the folder. Otherwise `databases` are connection strings, the
// warehouse's last; they may hold passwords, so the file names variables, which are set here.
std::string write_services(const settings& of, int shops, const std::vector<std::string>& databases);
// shop-1, …, warehouse
std::vector<std::string> names_of_services(int shops);

// The file that a daemon reads, its version `version`: the storm's file at first, then with a shop whose
// relay is told something else, and in every second one a further service, which comes and goes by that.
void write_daemon_file(const settings& of, int daemon, int version);
std::string daemon_file(const settings& of, int daemon);

// Which of the orders is whose. Those of one customer come from one producer, so that their commits have an
// order.
int shop_of(const services& all, int number);
order make_shop_order(const settings& of, const services& all, int number);

}  // namespace storm

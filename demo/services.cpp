#include "services.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "config/load.hpp"
#include "settle/testing.hpp"

namespace storm {
namespace {

namespace fs = std::filesystem;
using settle::testing::seeded_random;

constexpr auto warehouse_name = "warehouse";

std::vector<std::string> variables() {
  std::vector<std::string> all;
  for (char** one = environ; *one != nullptr; ++one) all.emplace_back(*one);
  return all;
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Whoever reads it sees all of the old one or all of the new one. It may hold a password.
void replace_file(const std::string& path, const std::string& text) {
  const auto fresh = path + ".new";
  std::ofstream(fresh, std::ios::binary) << text;
  fs::permissions(fresh, fs::perms::owner_read | fs::perms::owner_write);
  fs::rename(fresh, path);
}

std::string variable_of(const std::string& service) {
  auto name = "STORM_DATABASE_" + service;
  for (auto& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace

services read_services(const std::string& file) {
  const auto loaded = settle::config::load_configuration({file, {}, variables()}).values;
  services all;
  const auto lease_of = [](settle::duration of) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(of);
  };
  for (const auto& one : loaded.services) {
    if (one.name == warehouse_name)
      all.warehouse = {one.name, one.database};
    else if (!one.name.empty())
      all.shops.push_back({one.name, one.database});
    if (one.broker.empty() || one.broker != loaded.services.front().broker)
      throw std::runtime_error(file + ": all services of a storm need one [broker.NAME]");
    all.lease_max = std::max(all.lease_max, lease_of(one.relay.lease_ttl));
  }
  if (all.warehouse.name.empty() || all.shops.empty())
    throw std::runtime_error(file + ": a storm needs [service.warehouse] and at least one other service");
  all.broker = *loaded.find_broker(loaded.services.front().broker);
  all.lease_max = std::max(all.lease_max, lease_of(all.broker.options.lease_ttl));
  return all;
}

std::vector<std::string> names_of_services(int shops) {
  std::vector<std::string> names;
  for (int i = 0; i < shops; ++i) names.push_back(fmt::format("shop-{}", i + 1));
  names.emplace_back(warehouse_name);
  return names;
}

std::string write_services(const settings& of, int shops, const std::vector<std::string>& databases) {
  auto text = fmt::format(
      "# Written by order_storm. The leases are short, so that take-overs happen while you watch.\n"
      "[relay]\nlease_ttl = \"1s\"\n\n"
      "[broker.main]\n{}\npartitions = 4\nlease_ttl = \"1s\"\n",
      of.broker.empty()
          ? fmt::format("url = \"{}/broker.db\"", of.data)
          : fmt::format("url_env = \"{}\"\nqueues = 4\nsession_timeout = \"2s\"\nprefix = \"{}\"",
                        broker_variable, of.broker_prefix));
  const auto names = names_of_services(shops);
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += fmt::format("\n[service.{}]\n", names[i]);
    if (databases.empty()) {
      text += fmt::format("database = \"{}/{}.db\"\n", of.data, names[i]);
    } else {
      const auto variable = variable_of(names[i]);
      ::setenv(variable.c_str(), databases[i].c_str(), 1);
      text += fmt::format("database_env = \"{}\"\n", variable);
    }
  }
  auto path = of.data + "/settled.toml";
  replace_file(path, text);
  return path;
}

std::string daemon_file(const settings& of, int daemon) {
  return fmt::format("{}/settled-{}.toml", of.data, daemon + 1);
}

void write_daemon_file(const settings& of, int daemon, int version) {
  auto text = content_of(of.config);
  if (version > 0) {
    const auto all = read_services(of.config);
    const auto& changed = all.shops[static_cast<std::size_t>(version + daemon) % all.shops.size()].name;
    const auto table = fmt::format("[service.{}.relay]", changed);
    if (text.find(table) == std::string::npos)
      text += fmt::format("\n{}\nbatch_max = {}\n", table, 50 + version);
    if (version % 2 == 1)
      text += fmt::format("\n[service.storm-guest-{}]\ndatabase = \"{}/guest-{}.db\"\nbroker = \"{}\"\n",
                          daemon + 1, of.data, daemon + 1, all.broker.name);
  }
  replace_file(daemon_file(of, daemon), text);
}

int shop_of(const services& all, int number) { return number % static_cast<int>(all.shops.size()); }

order make_shop_order(const settings& of, const services& all, int number) {
  auto made = make_order(of, number);
  seeded_random random(of.seed * 1'000'003 + static_cast<std::uint64_t>(number));
  const auto producer = static_cast<std::uint64_t>(number) / all.shops.size() % producers;
  made.customer =
      fmt::format("{}/customer-{:02}", all.shops[static_cast<std::size_t>(shop_of(all, number))].name,
                  random.below(customers / producers) * producers + producer);
  return made;
}

}  // namespace storm

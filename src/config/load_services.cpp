#include "config/load_services.hpp"

#include <algorithm>
#include <map>

#include "compose/rabbitmq.hpp"
#include "config/load_webhooks.hpp"

namespace settle::config {
namespace {

constexpr std::size_t name_bytes_max = 63;

// The entries of one table, and the first line that speaks of it.
struct table_entries {
  std::vector<toml_entry> entries = {};
  std::size_t line = 0;
};
using tables = std::map<std::string, table_entries>;

// By the part of their names that follows `prefix`. Whatever has no further part is misplaced.
tables by_name(reading& all, std::span<const toml_entry> entries, std::string_view prefix) {
  tables found;
  for (const auto& entry : entries) {
    const auto rest = std::string_view(entry.key).substr(prefix.size());
    const auto dot = rest.find('.');
    if (dot == std::string_view::npos && !entry.is_table) {
      all.refuse(entry.line, entry.key,
                 fmt::format("stands in a table with a name, such as [{}orders]", prefix));
      continue;
    }
    const std::string name(rest.substr(0, dot));
    if (!is_table_name(name, name_bytes_max)) {
      all.refuse(entry.line, fmt::format("the name in [{}NAME]", prefix),
                 "is 1 to 63 letters, digits, - and _");
      continue;
    }
    auto& table = found[name];
    if (table.line == 0) table.line = entry.line;
    if (dot != std::string_view::npos) table.entries.push_back(entry);
  }
  return found;
}

void require_at_most(reading& all, std::size_t count, std::size_t most, std::string_view tables) {
  if (count > most)
    all.problems.push_back(
        fmt::format("{}: there are {} tables [{}], and {} are allowed", all.file, count, tables, most));
}

// A list of tables, [[route]] or [[broker.NAME.exchange]], in the order of the file.
template <class Row>
struct listed_table {
  Row content = {};
  std::size_t line = 0;
};
template <class Row>
std::vector<listed_table<Row>> load_list(reading& all, std::span<const toml_entry> entries,
                                         std::string_view prefix, std::span<const option_of<Row>> options) {
  std::map<std::size_t, listed_table<Row>> found;  // by their number
  for (const auto& entry : entries) {
    const auto rest = std::string_view(entry.key).substr(prefix.size());
    const auto dot = rest.find('.');
    const auto number = rest.substr(0, dot);
    if (dot == std::string_view::npos || number.find_first_not_of("0123456789") != std::string_view::npos) {
      all.refuse(entry.line, entry.key,
                 fmt::format("stands in a table of a list: [[{}]]", prefix.substr(0, prefix.size() - 1)));
      continue;
    }
    auto& one = found[std::stoul(std::string(number))];
    if (one.line == 0) one.line = entry.line;
    read_setting(all, entry, rest.substr(dot + 1), options, one.content);
  }
  std::vector<listed_table<Row>> in_order;
  for (auto& [number, one] : found) in_order.push_back(std::move(one));
  return in_order;
}

std::vector<topic_route> load_routes(reading& all, std::span<const toml_entry> entries,
                                     std::string_view prefix) {
  auto found = load_list<topic_route>(all, entries, prefix, route_options());
  require_at_most(all, found.size(), routes_max, "[route]");
  std::vector<topic_route> routes;
  for (auto& one : found) {
    if (const auto why = problem_of(one.content)) all.refuse(one.line, "a route's", *why);
    routes.push_back(std::move(one.content));
  }
  return routes;
}

std::vector<rabbitmq::existing_exchange> load_exchanges(reading& all, std::span<const toml_entry> entries,
                                                        const std::string& prefix) {
  auto found = load_list<rabbitmq::existing_exchange>(all, entries, prefix, exchange_options());
  require_at_most(all, found.size(), exchanges_max, prefix.substr(0, prefix.size() - 1));
  std::vector<rabbitmq::existing_exchange> exchanges;
  for (auto& one : found) {
    if (one.content.topic.empty())
      all.refuse(one.line, prefix + "topic", "is missing: the topic whose events go to this exchange");
    if (const auto why = compose::unusable_routing_key(one.content.routing_key); !why.empty())
      all.refuse(one.line, prefix + "routing_key", why);
    exchanges.push_back(std::move(one.content));
  }
  return exchanges;
}

class services_loading {
 public:
  services_loading(reading& all, const sorted_entries& from, configuration& to)
      : all_(all), from_(from), to_(to) {}

  void run() {
    load_brokers();
    const auto tables = by_name(all_, from_.services, "service.");
    require_at_most(all_, tables.size(), services_max, "service.NAME");
    if (tables.empty())
      load_short_form();
    else
      for (const auto& [name, table] : tables) load_service(name, table);
    if (!tables.empty()) refuse_short_form();
    refuse_one_database_twice();
  }

 private:
  void load_brokers() {
    const auto tables = by_name(all_, from_.brokers, "broker.");
    require_at_most(all_, tables.size(), brokers_max, "broker.NAME");
    for (const auto& [name, table] : tables) {
      auto made = to_.broker;
      made.name = name;
      const auto prefix = "broker." + name + ".";
      std::vector<toml_entry> exchanges;
      for (const auto& entry : table.entries) {
        const auto inside = std::string_view(entry.key).substr(prefix.size());
        if (inside.starts_with("exchange."))
          exchanges.push_back(entry);
        else
          read_setting(all_, entry, inside, broker_options(), made);
      }
      made.options.rabbitmq.existing_exchanges = load_exchanges(all_, exchanges, prefix + "exchange.");
      if (made.url.empty())
        all_.refuse(table.line, fmt::format("broker.{}.url", name), "is missing: the file of the broker");
      to_.brokers.push_back(std::move(made));
    }
    if (!to_.brokers.empty()) return;
    auto made = to_.broker;
    made.url = to_.data + "/broker.db";
    to_.brokers.push_back(std::move(made));
  }

  void load_short_form() {
    auto made = to_.service;
    if (made.database.empty()) made.database = to_.data + "/settle.db";
    made.webhooks = load_webhooks(all_, from_.webhooks, "webhook.");
    made.routes = load_routes(all_, from_.routes, "route.");
    choose_brokers(made, 0, "");
    to_.services.push_back(std::move(made));
  }

  void load_service(const std::string& name, const table_entries& table) {
    const auto prefix = "service." + name + ".";
    auto made = to_.service;
    made.name = name;
    std::vector<toml_entry> webhooks;
    std::vector<toml_entry> routes;
    for (const auto& entry : table.entries) {
      const auto inside = std::string_view(entry.key).substr(prefix.size());
      if (inside.starts_with("webhook."))
        webhooks.push_back(entry);
      else if (inside.starts_with("route."))
        routes.push_back(entry);
      else if (!entry.is_table)
        read_setting(all_, entry, inside, service_options(), made);
    }
    const auto is_about_database = [&](const toml_entry& one) {
      return std::string_view(one.key).substr(prefix.size()).starts_with("database");
    };
    if (made.database.empty() && std::ranges::none_of(table.entries, is_about_database))
      all_.refuse(
          table.line, prefix + "database",
          "is missing: a file, a connection string, or database_env or database_file that says where it is");
    made.webhooks = load_webhooks(all_, webhooks, prefix + "webhook.");
    made.routes = load_routes(all_, routes, prefix + "route.");
    choose_brokers(made, table.line, prefix);
    to_.services.push_back(std::move(made));
  }

  // Its own broker, if there is no choice; and all that it names must be there.
  void choose_brokers(service_settings& of, std::size_t line, const std::string& prefix) {
    if (of.broker.empty() && to_.brokers.size() == 1) of.broker = to_.brokers.front().name;
    if (of.broker.empty() && to_.brokers.size() > 1)
      return all_.refuse(line, prefix + "broker",
                         fmt::format("is missing: one of {}", fmt::join(broker_names(), ", ")));
    require_broker(of.broker, line, prefix + "broker");
    for (const auto& one : of.routes)
      if (!one.broker.empty()) require_broker(one.broker, line, prefix + "route.broker");
  }

  void require_broker(const std::string& name, std::size_t line, const std::string& option) {
    if (to_.find_broker(name) != nullptr) return;
    const auto names = broker_names();
    all_.refuse(line, option,
                names.front().empty()
                    ? fmt::format("is '{}', and there is no table [broker.{}]", name, name)
                    : fmt::format("is '{}', and the brokers are {}", name, fmt::join(names, ", ")));
  }

  std::vector<std::string> broker_names() const {
    std::vector<std::string> names;
    for (const auto& one : to_.brokers) names.push_back(one.name);
    return names;
  }

  // What would belong to nobody.
  void refuse_short_form() {
    if (const auto given = all_.origins.find("database");
        given != all_.origins.end() && !to_.service.database.empty())
      all_.problems.push_back(
          given->second +
          ": database is that of the short form; with tables [service.NAME] each has its own");
    for (const auto* entries : {&from_.webhooks, &from_.routes})
      if (!entries->empty())
        all_.refuse(entries->front().line, entries->front().key,
                    "is of the short form; with tables [service.NAME] it stands in one of them");
  }

  // Their relays would share the work, and every figure would be shown twice.
  void refuse_one_database_twice() {
    std::map<std::string_view, std::string_view> owners;
    for (const auto& one : to_.services) {
      const auto [known, is_new] = owners.emplace(one.database, one.name);
      if (!is_new && !one.database.empty())
        all_.problems.push_back(fmt::format("{}: service.{} and service.{} have the same database", all_.file,
                                            known->second, one.name));
    }
  }

  reading& all_;
  const sorted_entries& from_;
  configuration& to_;
};

template <class Row>
std::string print_list(const std::vector<Row>& rows, std::string_view prefix,
                       std::span<const option_of<Row>> options, const origin_map& origins) {
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out += fmt::format("\n[[{}]]\n", prefix);
    for (const auto& one : options) {
      const auto origin = origins.find(fmt::format("{}.{}.{}", prefix, i, one.name));
      out += fmt::format("{:<40} # {}\n", fmt::format("{} = {}", one.name, written(rows[i], one)),
                         origin == origins.end() ? "default" : origin->second);
    }
  }
  return out;
}

}  // namespace

const service_settings* configuration::find_service(std::string_view name) const {
  const auto found = std::ranges::find(services, name, &service_settings::name);
  return found == services.end() ? nullptr : &*found;
}

const broker_settings* configuration::find_broker(std::string_view name) const {
  const auto found = std::ranges::find(brokers, name, &broker_settings::name);
  return found == brokers.end() ? nullptr : &*found;
}

sorted_entries sort_entries(std::vector<toml_entry> all) {
  sorted_entries sorted;
  for (auto& entry : all) {
    const std::string_view key = entry.key;
    const bool in_a_broker = key.starts_with("broker.") && (entry.is_table || key.find('.', 7) != key.npos);
    auto& to = key.starts_with("service.")   ? sorted.services
               : in_a_broker                 ? sorted.brokers
               : key.starts_with("webhook.") ? sorted.webhooks
               : key.starts_with("route.")   ? sorted.routes
                                             : sorted.top;
    to.push_back(std::move(entry));
  }
  return sorted;
}

void load_services(reading& all, const sorted_entries& from, configuration& to) {
  services_loading(all, from, to).run();
}

std::string print_services(const configuration& of, const origin_map& origins) {
  std::string out;
  for (const auto& one : of.brokers)
    if (!one.name.empty()) {
      const auto table = "broker." + one.name;
      out += print_table(one, broker_options(), table, "broker", origins);
      out += print_list(one.options.rabbitmq.existing_exchanges, table + ".exchange", exchange_options(),
                        origins);
    }
  for (const auto& one : of.services) {
    const auto table = one.name.empty() ? std::string() : "service." + one.name;
    const auto prefix = table.empty() ? std::string() : table + ".";
    if (!table.empty()) out += print_table(one, service_options(), table, "", origins);
    out += print_list(one.routes, prefix + "route", route_options(), origins);
    out += print_webhooks(one.webhooks, prefix + "webhook.", origins);
  }
  return out;
}

}  // namespace settle::config

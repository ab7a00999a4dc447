#include "config.hpp"

#include <boost/json.hpp>
#include <functional>
#include <set>

#include "settle/error.hpp"

namespace shop {
namespace {

namespace json = boost::json;

[[noreturn]] void refuse(const std::string& why) {
  throw settle::error(settle::errc::invalid_argument, "the shop's configuration: " + why);
}

// Reads an object by its members; one that nobody reads is a mistake of whoever wrote it.
class reader {
 public:
  reader(const json::value& of, std::string where) : where_(std::move(where)) {
    if (!of.is_object()) refuse(where_ + " is no object");
    object_ = &of.get_object();
  }

  void text(const char* name, std::string& into) {
    if (const auto* found = find(name)) {
      if (!found->is_string()) refuse(where_ + name + " is no text");
      into = std::string(found->get_string());
    }
  }
  void number(const char* name, double& into) {
    if (const auto* found = find(name)) {
      json::error_code failed;
      into = found->to_number<double>(failed);
      if (failed || into < 0) refuse(where_ + name + " is no number above zero");
    }
  }
  void time(const char* name, settle::duration& into) {
    double seconds = std::chrono::duration<double>(into).count();
    number(name, seconds);
    into = std::chrono::duration_cast<settle::duration>(std::chrono::duration<double>(seconds));
  }
  template <class Integer>
  void integer(const char* name, Integer& into) {
    if (const auto* found = find(name)) {
      json::error_code failed;
      into = found->to_number<Integer>(failed);
      if (failed) refuse(where_ + name + " is no number that fits");
    }
  }
  const json::value* find(const char* name) {
    seen_.insert(name);
    return object_->if_contains(name);
  }
  void end() const {
    for (const auto& member : *object_)
      if (!seen_.contains(std::string(member.key())))
        refuse("nobody knows " + where_ + std::string(member.key()));
  }

 private:
  std::string where_;
  const json::object* object_ = nullptr;
  std::set<std::string> seen_;
};

gateway_moods read_moods(const json::value& of) {
  gateway_moods made;
  reader from(of, "gateway.");
  from.integer("seed", made.seed);
  from.number("declined", made.declined);
  from.number("silent", made.silent);
  from.number("late", made.late);
  from.number("duplicated", made.duplicated);
  from.number("forged", made.forged);
  from.number("failing", made.failing);
  from.number("lost_answer", made.lost_answer);
  from.time("late_by_seconds", made.late_by);
  from.end();
  return made;
}

double seconds(settle::duration of) { return std::chrono::duration<double>(of).count(); }

}  // namespace

const std::vector<std::string>& service_names() {
  static const std::vector<std::string> names = {"gateway", "order",     "checkout",
                                                 "payment", "warehouse", "notification"};
  return names;
}

service_config config::of(const std::string& service) const {
  const auto found = services.find(service);
  auto made = found == services.end() ? service_config{} : found->second;
  if (made.database.empty()) made.database = folder + "/" + service + ".db";
  return made;
}

std::string config::broker_place() const { return broker.empty() ? folder + "/broker.db" : broker; }

config read_config(const std::string& text) {
  json::error_code failed;
  const auto parsed = json::parse(text, failed);
  if (failed) refuse("it is not JSON: " + failed.message());
  config made;
  reader from(parsed, "");
  from.text("folder", made.folder);
  from.text("broker", made.broker);
  from.text("webhook_secret", made.webhook_secret);
  from.time("payment_window_seconds", made.payment_window);
  from.time("hold_seconds", made.hold);
  if (const auto* moods = from.find("gateway")) made.gateway = read_moods(*moods);
  if (const auto* services = from.find("services")) {
    reader all(*services, "services.");
    for (const auto& name : service_names()) {
      const auto* found = all.find(name.c_str());
      if (found == nullptr) continue;
      reader one(*found, "services." + name + ".");
      one.text("database", made.services[name].database);
      one.integer("port", made.services[name].port);
      one.end();
    }
    all.end();
  }
  from.end();
  return made;
}

std::string write_config(const config& what) {
  json::object services;
  for (const auto& [name, one] : what.services)
    services[name] = json::object{{"database", one.database}, {"port", one.port}};
  const auto& moods = what.gateway;
  return json::serialize(json::object{{"folder", what.folder},
                                      {"broker", what.broker},
                                      {"webhook_secret", what.webhook_secret},
                                      {"payment_window_seconds", seconds(what.payment_window)},
                                      {"hold_seconds", seconds(what.hold)},
                                      {"services", services},
                                      {"gateway",
                                       {{"seed", moods.seed},
                                        {"declined", moods.declined},
                                        {"silent", moods.silent},
                                        {"late", moods.late},
                                        {"duplicated", moods.duplicated},
                                        {"forged", moods.forged},
                                        {"failing", moods.failing},
                                        {"lost_answer", moods.lost_answer},
                                        {"late_by_seconds", seconds(moods.late_by)}}}});
}

}  // namespace shop

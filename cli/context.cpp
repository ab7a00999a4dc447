#include "cli/context.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/nearest_name.hpp"
#include "cli/failure.hpp"
#include "cli/hints.hpp"
#include "config/load.hpp"

namespace settle::cli {
namespace {

constexpr std::size_t names_shown_max = 30;  // of the services of a file, in an error

std::vector<std::string> process_environment() {
  std::vector<std::string> all;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) all.emplace_back(*at);
  return all;
}

// Several problems stand on a line each; an error of the command line is one line.
std::string on_one_line(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) text.replace(at, 1, "; ");
  return text;
}

config::configuration load(const context& from) try {
  config::inputs all;
  all.file = from.config;
  if (from.data_given) all.flags["data"] = from.data;
  all.environment = process_environment();
  return config::load_configuration(all).values;
} catch (const config::configuration_error& e) {
  throw failure(errc::invalid_argument, on_one_line(e.what()));
}

std::vector<std::string> names_of(const config::configuration& file) {
  std::vector<std::string> names;
  for (const auto& one : file.services) names.push_back(one.name);
  return names;
}

std::string list_of(const std::vector<std::string>& names) {
  const auto shown = std::min(names.size(), names_shown_max);
  auto text = fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
  return shown == names.size() ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

[[noreturn]] void refuse_name(const context& from, const config::configuration& file,
                              const std::string& name) {
  if (file.is_short())
    throw failure(errc::invalid_argument,
                  fmt::format("{} has no tables [service.NAME], only one service without a name; leave out "
                              "--service",
                              from.config));
  throw failure(errc::invalid_argument, fmt::format("{} has no service '{}'; did you mean {}?", from.config,
                                                    name, nearest_name(name, names_of(file))));
}

}  // namespace

void context::note_done(std::string what) {
  ::signal(SIGPIPE, SIG_IGN);
  done = std::move(what);
}

const config::configuration* context::file() const {
  if (!conflict.empty()) throw failure(errc::invalid_argument, conflict);
  if (config.empty() && !service.empty())
    throw failure(errc::invalid_argument,
                  "--service names a service of the daemon's file; name that too, with --config FILE");
  if (config.empty()) return nullptr;
  if (!file_) file_ = std::make_shared<const config::configuration>(load(*this));
  return file_.get();
}

const config::service_settings* context::chosen_service() const {
  const auto* all = file();
  if (all == nullptr) return nullptr;
  if (!service.empty()) return &service_named(service);
  if (all->services.size() == 1) return &all->services.front();
  throw failure(errc::invalid_argument, fmt::format("{} has {} services: {}; name one with --service", config,
                                                    all->services.size(), list_of(names_of(*all))));
}

const config::service_settings& context::service_named(const std::string& name) const {
  const auto* found = file()->find_service(name);
  if (found == nullptr) refuse_name(*this, *file(), name);
  return *found;
}

const config::broker_settings* context::chosen_broker() const {
  const auto* all = file();
  if (all == nullptr) return nullptr;
  if (service.empty() && all->brokers.size() == 1) return &all->brokers.front();
  return all->find_broker(chosen_service()->broker);
}

bool context::means_all_services() const {
  const auto* all = file();
  return all != nullptr && service.empty() && !all->is_short();
}

std::string context::data_folder() const {
  const auto* all = file();
  return all == nullptr ? data : all->data;
}

bool context::uses_data_folder() const {
  if (file() == nullptr) return database.empty() || broker.empty();
  return is_file_in(service_path(), data_folder()) || is_file_in(broker_path(), data_folder());
}

std::string context::service_path() const {
  if (const auto* one = chosen_service()) return one->database;
  return database.empty() ? data + "/settle.db" : database;
}

std::string context::broker_path() const {
  if (const auto* one = chosen_broker()) return one->url;
  return broker.empty() ? data + "/broker.db" : broker;
}

compose::broker_options context::broker_options() const {
  const auto* one = chosen_broker();
  return one == nullptr ? compose::broker_options() : one->options;
}

bool is_file_in(const std::string& path, const std::string& folder) {
  return !compose::is_postgres(path) && std::filesystem::path(path).parent_path() == folder;
}

std::string given_for(const context& shared, const std::string& service) {
  return service.empty() ? shared.given : shared.given + argument_text("--service", service);
}

}  // namespace settle::cli

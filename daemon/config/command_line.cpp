#include "daemon/config/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/nearest_name.hpp"
#include "config/option.hpp"
#include "daemon/config/reference.hpp"

namespace settle::daemon {
namespace {

using config::configuration_error;
using config::kind;

constexpr const char* about =
    "settled: runs a relay from DATA/settle.db, or another database, to the embedded broker in "
    "DATA/broker.db,\n"
    "takes webhooks, keeps idempotency keys for services in any language (/v1/keys), removes what is over, "
    "and\n"
    "serves /healthz, /readyz and /metrics. Without arguments it works in settle-data/ and listens on "
    "127.0.0.1:8600.";

constexpr const char* footer =
    R"(Every setting can also stand in a TOML file or in the environment (SETTLE_LISTEN, SETTLE_RELAY_BATCH_MAX, …);
a flag wins over the environment, the environment over the file. See docs/reference/configuration.md.

Exit codes:
  0  stopped by SIGTERM or SIGINT
  2  bad configuration, a folder or address that cannot be used, or a second daemon
  3  a store is unavailable; try again)";

std::string first_sentence(std::string_view text) {
  const auto end = text.find(". ");
  return std::string(end == std::string_view::npos ? text : text.substr(0, end + 1));
}

void add_settings(CLI::App& program, std::map<std::string, std::string>& flags) {
  const config::configuration defaults;
  for (const auto& one : config::all_options()) {
    const std::string name(one.name);
    const auto fallback = shown(defaults, one);
    program
        .add_option_function<std::string>(
            flag_of(one), [&flags, name](const std::string& text) { flags[name] = text; },
            first_sentence(one.meaning) + (fallback.empty() ? "" : "\nDefault: " + fallback))
        ->option_text(one.type == kind::time      ? "TIME"
                      : one.type == kind::address ? "ADDR"
                      : one.type == kind::store   ? "DB"
                      : one.type == kind::redis   ? "URL"
                                                  : "VALUE")
        ->group("Settings");
  }
}

std::string unknown_argument(const CLI::App& program) {
  const auto rest = program.remaining();
  if (rest.empty()) return {};
  const auto name = rest.front().substr(0, rest.front().find('='));
  if (!name.starts_with("-")) return fmt::format("unexpected argument '{}'", name);
  std::vector<std::string> names;
  for (const auto* one : program.get_options()) names.push_back(one->get_name());
  return fmt::format("there is no flag '{}'; did you mean '{}'?", name, nearest_name(name, names));
}

std::vector<std::string> listed(char** environment) {
  std::vector<std::string> all;
  for (; *environment != nullptr; ++environment) all.emplace_back(*environment);
  return all;
}

}  // namespace

command_line parse_command_line(int argc, char** argv, char** environment) {
  command_line found;
  bool config_reference = false;
  bool metrics_reference_page = false;
  CLI::App program(about, "settled");
  program.footer(footer);
  program.get_formatter()->column_width(34);
  program.allow_extras();
  program.add_option("--config", found.given.file, "Read settings from this TOML file")
      ->envname("SETTLE_CONFIG")
      ->option_text("FILE");
  program.add_flag("--print-config", found.print_config,
                   "Print the effective settings and where each came from, then end");
  program.add_flag("--print-config-reference", config_reference,
                   "Print docs/reference/configuration.md, then end");
  program.add_flag("--print-metrics-reference", metrics_reference_page,
                   "Print docs/reference/metrics.md, then end");
  program.set_version_flag("--version", "settled " SETTLE_VERSION, "Print the version and exit");
  add_settings(program, found.given.flags);
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForVersion&) {
    found.print = "settled " SETTLE_VERSION "\n";
  } catch (const CLI::Success&) {
    found.print = program.help();
  } catch (const CLI::ParseError& e) {
    throw configuration_error(fmt::format("{}; see `settled --help`", e.what()));
  }
  if (found.print) return found;
  if (const auto why = unknown_argument(program); !why.empty()) throw configuration_error(why);
  if (config_reference) found.print = configuration_reference();
  if (metrics_reference_page) found.print = metrics_reference();
  found.given.environment = listed(environment);
  return found;
}

}  // namespace settle::daemon

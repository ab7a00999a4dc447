// One row per setting: its name, its field, what it may be, and why one would change it. Settings are those
// of a whole file (configuration), and those of each service, broker, route and source of webhooks in it. The
// row is all that a setting needs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/configuration.hpp"
#include "config/field.hpp"
#include "config/webhook_settings.hpp"

namespace settle::config {

enum class kind { text, address, store, broker, redis, level, flag, count, bytes, time, choice, place };

// In the unit of the field: microseconds, bytes, or whatever is counted. For text: its length in bytes.
struct bounds {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;

constexpr bounds between(duration min, duration max) { return {min.count(), max.count()}; }
constexpr bounds bytes_of_path{1, 4000};
constexpr bounds bytes_of_name{0, 255};
constexpr bounds bytes_of_topic{1, 255};
constexpr bounds bytes_of_store{0, 4000};

template <class Settings>
struct option_of {
  std::string_view name = {};  // "relay.batch_max": batch_max in the file's section [relay]
  kind type = kind::text;
  field_of<Settings> where = {};
  bounds allowed = {};
  std::string_view unit = {};     // what a count counts: "events"
  std::string_view meaning = {};  // for the reference page and for --help; the first sentence stands alone
  bool secret = false;            // never shown: not by --print-config, not in an error
  std::span<const std::string_view> words = {};  // of a choice
};

using option = option_of<configuration>;
std::span<const option> all_options();
const option* find_option(std::string_view name);

// Whether it may hold a password. Then a file may say where its text is instead: NAME_env is a variable,
// NAME_file a file.
template <class Settings>
constexpr bool may_be_elsewhere(const option_of<Settings>& what) {
  return what.secret || what.type == kind::store || what.type == kind::broker || what.type == kind::redis;
}

// Several tables as one.
template <class Row, std::size_t... Sizes>
constexpr auto joined(const std::array<Row, Sizes>&... tables) {
  std::array<Row, (Sizes + ...)> all{};
  std::size_t at = 0;
  const auto add = [&](const auto& table) {
    for (const auto& row : table) all[at++] = row;
  };
  (add(tables), ...);
  return all;
}

// The same rows without the first part of their names: partitions of broker.partitions.
template <class Row, std::size_t Size>
constexpr auto without_section(std::array<Row, Size> table) {
  for (auto& row : table) row.name.remove_prefix(row.name.find('.') + 1);
  return table;
}

// Of one table [service.NAME], [broker.NAME], [[broker.NAME.exchange]], [[route]] or [webhook.NAME]; the
// names are those inside it.
using service_option = option_of<service_settings>;
using broker_option = option_of<broker_settings>;
using exchange_option = option_of<rabbitmq::existing_exchange>;
using route_option = option_of<topic_route>;
std::span<const service_option> service_options();
std::span<const broker_option> broker_options();
std::span<const exchange_option> exchange_options();
std::span<const route_option> route_options();

using webhook_option = option_of<webhook_settings>;
std::span<const webhook_option> webhook_options();

// Whether it means anything with this scheme.
bool is_for(const webhook_option& what, std::string_view scheme);

// Derived from the name, so that they cannot differ from it: SETTLE_RELAY_BATCH_MAX, --relay-batch-max.
std::string environment_of(const option& of);
std::string flag_of(const option& of);

// Why a text cannot be the value of this option, in words that follow "relay.batch_max "; or nothing, and
// then the settings have it.
template <class Settings>
std::optional<std::string> assign(Settings& to, const option_of<Settings>& what, std::string_view text);

// The same from a file, where it stands in quotes or not.
template <class Settings>
std::optional<std::string> assign_written(Settings& to, const option_of<Settings>& what,
                                          std::string_view text, bool quoted);

// The value as a file would have it, without quotes: 500, 4MiB, 10s. A secret gives "(hidden)", a store is
// shown without its password.
template <class Settings>
std::string shown(const Settings& from, const option_of<Settings>& what);

// As a file has it, with quotes where they belong.
template <class Settings>
std::string written(const Settings& from, const option_of<Settings>& what);

// "1 to 10,000 events", "50ms to 1h"
template <class Settings>
std::string allowed_text(const option_of<Settings>& of);

}  // namespace settle::config

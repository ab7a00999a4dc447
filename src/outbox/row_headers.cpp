#include "outbox/row_headers.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/json.hpp"
#include "base/zoo.hpp"
#include "dead_letter/shared.hpp"
#include "settle/dead_letter.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "wire/attribute_names.hpp"

namespace settle::outbox {
namespace {

using enum attribute_writer;

constexpr std::array in_rows{cause, natural_key, replay_mark};
constexpr std::array in_rows_of_dead_letters{cause, natural_key, replay_mark, dead_letter};

constexpr std::array<std::string_view, 2> replay_marks{"settlereplayfor", "settlereplayof"};

bool has_replay_mark(const message& m) {
  return std::ranges::any_of(replay_marks, [&](auto name) { return m.extensions.contains(name); });
}

}  // namespace

attributes read_headers(std::string_view stored, const message& of, std::vector<changed_headers>& changed) {
  if (stored.empty()) return {};
  try {
    auto given = attributes_from_json(stored);
    rename_old_attributes(given);
    const bool announces = of.topic.ends_with(".dlq");
    auto checked = announces ? check_headers(std::move(given), in_rows_of_dead_letters)
                             : check_headers(std::move(given), in_rows);
    if (!checked.changes.empty()) changed.push_back({of.id, of.topic, std::move(checked.changes)});
    return std::move(checked.extensions);
  } catch (const error& e) {
    if (e.code() != errc::decode_failed) throw;
    changed.push_back({of.id, of.topic, "all left out, because they cannot be read"});
    return {};
  }
}

void header_check::check_addresses(std::span<message> messages, std::vector<changed_headers>& changed) {
  std::optional<owned_transaction> tx;
  for (auto& m : messages) {
    if (!has_replay_mark(m)) continue;
    if (!tx) tx.emplace(db_.read());
    if (zoo::has(zoo::bug::replay_address_believed) || is_replay(*tx, m)) continue;
    auto checked = check_headers(std::move(m.extensions), std::array{cause, natural_key, relay, dead_letter});
    m.extensions = std::move(checked.extensions);
    const auto known = std::ranges::find(changed, m.id, &changed_headers::id);
    if (known == changed.end())
      changed.push_back({m.id, m.topic, std::move(checked.changes)});
    else
      known->changes += ", " + checked.changes;
  }
}

void header_check::finish(std::span<message> messages, std::vector<changed_headers>& changed) {
  check_addresses(messages, changed);
  const auto& env = db_.env();
  for (const auto& one : changed) {
    env.counters->add("settle_outbox_headers_changed_total", {{"topic", one.topic}});
    if (told_.size() >= told_max || !told_.emplace(one.topic, one.changes).second) continue;
    env.log->write(log_level::warning, "outbox_headers_changed",
                   {{"outbox", db_.name()}, {"id", one.id}, {"topic", one.topic}, {"changes", one.changes}});
  }
  changed.clear();
}

}  // namespace settle::outbox

#include "consume/dedup_keys.hpp"

#include <algorithm>
#include <utility>

#include "base/encoding.hpp"
#include "base/json.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

namespace settle::consume {
namespace {

// Of ids and names: what the indexes of every database can hold, several of them together.
constexpr std::size_t text_bytes_max = 1024;

bool is_storable(std::string_view text) {
  return text.size() <= text_bytes_max && is_utf8(text) && text.find('\0') == std::string_view::npos;
}

bool has_storable_names(const message& m) {
  return is_storable(m.id) && is_storable(m.key) && is_storable(m.type) && is_storable(m.topic);
}

void make_storable(work& one) {
  auto& m = one.content.content;
  for (auto* text : {&m.id, &m.key, &m.type, &m.topic})
    *text = storable_text(*text, std::min(3 * text->size(), text_bytes_max));
  one.unfit = true;
}

bool has_none(const message& m, dedup_key by) { return (by == dedup_key::message_id ? m.id : m.key).empty(); }

// What stands in for the id of a message that has none, or none that can be stored: where it was delivered
// from. Where there are no positions it is what the message says, so that a copy is recognised and another
// message is not taken for one.
std::string place_key(const delivery& of, std::string_view partition) {
  const auto& m = of.content;
  std::string place = of.at.text();
  if (of.at.empty()) {
    const auto digest = sha256(json_array().add_all({m.type, m.key, m.subject, m.payload}).text());
    place = to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
  }
  return "no id: " + std::string(partition) + "/" + place;
}

}  // namespace

dedup_keys dedup_keys_of(batch messages, dedup_key by, const fence_keeper& fences) {
  dedup_keys keys;
  keys.all.reserve(messages.size());
  const auto keep = [&](std::string made) -> std::string_view {
    keys.made.reserve(messages.size());  // so that the views of them stay valid
    return keys.made.emplace_back(std::move(made));
  };
  for (const auto* one : messages) {
    const auto& m = one->what();
    if (one->unfit || has_none(m, by))
      keys.all.push_back(keep(place_key(one->content, fences.log_of(*one))));
    else
      keys.all.push_back(by == dedup_key::message_id ? std::string_view(m.id) : keep(m.key + "-" + m.type));
  }
  return keys;
}

std::optional<error> find_unfit(work& one, dedup_key by) {
  const auto& m = one.what();
  if (has_none(m, by))
    return error(errc::message_id_missing, "a message of type " + m.type + " on " + m.topic);
  if (!one.unfit && !has_storable_names(m)) make_storable(one);
  if (!one.unfit) return std::nullopt;
  return error(errc::decode_failed, "its id, topic, type or key is not UTF-8 text of at most 1,024 bytes");
}

}  // namespace settle::consume

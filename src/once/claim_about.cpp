#include "once/claim_about.hpp"

#include <array>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "settle/error.hpp"

namespace settle::keys {
namespace {

std::array<std::pair<std::string_view, std::string_view>, 5> parts_of(const claim_about& what) {
  return {{{"caller", what.caller},
           {"key", what.key},
           {"method", what.method},
           {"target", what.target},
           {"label", what.label}}};
}

}  // namespace

void check_about(const claim_about& what) {
  std::size_t bytes = 0;
  for (const auto& [name, text] : parts_of(what)) {
    bytes += text.size();
    if (!is_utf8(text) || text.find('\0') != std::string_view::npos)
      throw error(errc::invalid_argument,
                  "about." + std::string(name) + " of a claim must be UTF-8 without NUL");
  }
  if (bytes > claim_about::bytes_max)
    throw error(errc::payload_too_large, "what a claim is about has " + std::to_string(bytes) +
                                             " bytes; claim_about::bytes_max is " +
                                             std::to_string(claim_about::bytes_max));
}

std::string stored_about(const claim_about& what) {
  attributes given;
  for (const auto& [name, text] : parts_of(what))
    if (!text.empty()) given.emplace(name, text);
  return to_json(given);
}

void read_about(std::string_view stored, unknown_claim& into) {
  if (stored.empty()) return;
  attributes given;
  try {
    given = attributes_from_json(stored);
  } catch (const error&) {
    into.label = stored;
    return;
  }
  const auto take = [&](const char* name, std::string& to) {
    if (const auto found = given.find(name); found != given.end()) to = found->second;
  };
  take("caller", into.caller);
  take("key", into.key);
  take("method", into.method);
  take("target", into.target);
  take("label", into.label);
}

}  // namespace settle::keys

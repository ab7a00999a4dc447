// Text of a message: what http/shared.hpp has, lists and percent-encoding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/shared.hpp"

namespace settle::inline v0::http {

std::string_view trimmed(std::string_view text);

// `host[:port]` as Host and a target with a scheme have it (RFC 3986, 3.2.2 and 3.2.3), without the comma: a
// list of hosts is none. Empty, as Host may be, too.
bool is_authority(std::string_view text);

// Calls `each` with every element of a comma-separated list; empty ones are left out.
template <class Each>
void for_each_element(std::string_view list, const Each& each) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    const auto element = trimmed(list.substr(0, comma));
    if (!element.empty()) each(element);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
}

}  // namespace settle::inline v0::http

// What an error says between its code and its advice, where those are said elsewhere.
#pragma once

#include <string_view>

#include "settle/error.hpp"

namespace settle::inline v0 {

// Valid as long as the error is.
inline std::string_view detail_of(const error& e) {
  const auto& about = info(e.code());
  std::string_view text = e.what();
  const auto around = about.name.size() + 2 + about.advice.size() + 3;  // "name: " and " (advice)"
  return text.size() < around ? text : text.substr(about.name.size() + 2, text.size() - around);
}

}  // namespace settle::inline v0

// Several texts as one that no other list of texts gives, to be hashed.
#pragma once

#include <string>
#include <string_view>

namespace settle::inline v0 {

inline void append_part(std::string& to, std::string_view part) {
  to.append(std::to_string(part.size())).append(":").append(part);
}

}  // namespace settle::inline v0

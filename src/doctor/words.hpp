// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

#include "settle/environment.hpp"

namespace settle::doctor {

std::string age_text(duration of);          // 12 s, 3 min, 2 h 4 min, 5 d 3 h
std::string size_text(std::int64_t bytes);  // 800 kB, 1.2 GB
std::string counted(std::int64_t number, const std::string& noun);

inline duration microseconds(std::int64_t count) { return duration(count); }

}  // namespace settle::doctor

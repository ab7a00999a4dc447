#include "doctor/words.hpp"

#include <fmt/format.h>

namespace settle::doctor {

std::string age_text(duration of) {
  const auto total = std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::seconds>(of).count(), 0);
  if (total < 60) return fmt::format("{} s", total);
  if (total < 3600) return fmt::format("{} min", total / 60);
  if (total < 86400) return fmt::format("{} h {} min", total / 3600, total % 3600 / 60);
  return fmt::format("{} d {} h", total / 86400, total % 86400 / 3600);
}

std::string size_text(std::int64_t bytes) {
  if (bytes < 1'000'000) return fmt::format("{} kB", (bytes + 999) / 1000);
  if (bytes < 1'000'000'000) return fmt::format("{} MB", bytes / 1'000'000);
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

std::string counted(std::int64_t number, const std::string& noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace settle::doctor

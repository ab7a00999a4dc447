#include "screen.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace storm {
namespace {

std::string bar(std::int64_t done, std::int64_t all) {
  constexpr std::int64_t width = 24;
  const auto filled = all == 0 ? width : done * width / all;
  std::string out = "[";
  for (std::int64_t i = 0; i < width; ++i) out += i < filled ? '#' : '.';
  return out + "]";
}

}  // namespace

std::string grouped(std::int64_t number) {
  const auto digits = std::to_string(number);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

screen::screen() : terminal_(::isatty(STDOUT_FILENO) == 1) {}

void screen::say(const std::string& line) {
  clear();
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void screen::progress(double at, std::int64_t committed, std::int64_t applied, int orders) {
  const auto text = fmt::format("{:5.1f} s  {} committed, {} applied of {}  {}", at, grouped(committed),
                                grouped(applied), grouped(orders), bar(committed + applied, 2 * orders));
  if (!terminal_) {
    if (at - last_line_ >= 1) {
      last_line_ = at;
      say(text);
    }
    return;
  }
  fmt::print("\r\033[K{}", text);
  std::fflush(stdout);
  shown_ = true;
}

void screen::clear() {
  if (shown_) fmt::print("\r\033[K");
  shown_ = false;
}

}  // namespace storm

#include "cli/text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/time_text.hpp"

namespace settle::cli {
namespace {

bool is_control(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20 || byte == 0x7f) return true;
  // U+0080 to U+009F: terminals obey them like their escape sequences
  if (byte != 0xc2 || at + 1 >= text.size()) return false;
  const auto next = static_cast<unsigned char>(text[at + 1]);
  return next >= 0x80 && next <= 0x9f;
}

std::string escaped(char c) { return fmt::format("\\x{:02x}", static_cast<unsigned char>(c)); }

}  // namespace

std::string grouped(std::int64_t number) {
  auto digits = fmt::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string counted(std::int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", grouped(number), what, number == 1 ? "" : "s");
}

std::string age(duration of) {
  using namespace std::chrono;
  const auto total = std::max<std::int64_t>(duration_cast<seconds>(of).count(), 0);
  if (total < 1)
    return fmt::format("{:.1f} s", std::max(duration_cast<std::chrono::duration<double>>(of).count(), 0.0));
  if (total < 60) return fmt::format("{} s", total);
  if (total < 3600) return fmt::format("{} min {} s", total / 60, total % 60);
  if (total < 86400) return fmt::format("{} h {} min", total / 3600, total % 3600 / 60);
  return fmt::format("{} d {} h", grouped(total / 86400), total % 86400 / 3600);
}

bool is_printable(std::string_view text) {
  if (!is_utf8(text)) return false;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (is_control(text, at) && text[at] != '\n' && text[at] != '\r' && text[at] != '\t') return false;
  return true;
}

std::string for_terminal(std::string_view text) {
  const bool utf8 = is_utf8(text);
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') {
      out += "\\n";
    } else if (is_control(text, at)) {
      out += escaped(c);
      if (static_cast<unsigned char>(c) == 0xc2) out += escaped(text[++at]);
    } else if (!utf8 && static_cast<unsigned char>(c) >= 0x80) {
      out += escaped(c);
    } else {
      out += c;
    }
  }
  return out;
}

std::string cut(std::string_view text, std::size_t bytes_max) {
  const auto line = one_line(text, bytes_max);
  return for_terminal(line) + (text.size() > line.size() ? "…" : "");
}

std::string short_time(timestamp at) {
  auto text = to_rfc3339(at);
  return text.substr(0, text.find('.')) + "Z";
}

std::string safe_json_text(std::string_view text) {
  return is_utf8(text) ? std::string(text) : for_terminal(text);
}

}  // namespace settle::cli

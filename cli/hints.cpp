#include "cli/hints.hpp"

#include <algorithm>
#include <cctype>

namespace settle::cli {
namespace {

constexpr std::string_view command_mark = "`settle ";

bool takes_stores(std::string_view command) {
  for (const std::string_view own : {"--help", "--data", "--database", "--broker", "--config"})
    if (command.find(own) != std::string_view::npos) return false;
  return !command.starts_with("help");
}

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("/._-:@%+,=").find(c) != std::string_view::npos;
}

}  // namespace

std::string with_given(std::string_view text, std::string_view given) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto begin = text.find(command_mark, at);
    const auto end = begin == std::string_view::npos ? begin : text.find('`', begin + 1);
    if (end == std::string_view::npos) return out.append(text.substr(at));
    out.append(text.substr(at, end - at));
    const auto command = text.substr(begin + command_mark.size(), end - begin - command_mark.size());
    if (takes_stores(command)) out.append(given);
    out += '`';
    at = end + 1;
  }
  return out;
}

std::string argument_text(std::string_view name, std::string_view content) {
  std::string out = " " + std::string(name) + " ";
  if (!content.empty() && std::ranges::all_of(content, is_plain)) return out.append(content);
  out += '\'';
  for (const char c : content) out.append(c == '\'' ? std::string("'\\''") : std::string(1, c));
  return out + '\'';
}

}  // namespace settle::cli

#include "config/reading.hpp"

#include <fstream>

namespace settle::config {
namespace {

constexpr std::size_t elsewhere_bytes_max = 64 * 1024;
constexpr std::string_view name_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

}  // namespace

bool is_table_name(std::string_view text, std::size_t bytes_max) {
  return !text.empty() && text.size() <= bytes_max &&
         text.find_first_not_of(name_characters) == std::string_view::npos;
}

// Files end with a line feed, and people leave blanks.
std::string_view secret_in(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

text_elsewhere text_of_variable(const std::vector<std::string>& environment, const std::string& name) {
  for (const auto& one : environment)
    if (one.starts_with(name + "=")) return {one.substr(name.size() + 1), {}};
  return {std::nullopt, "names a variable that is not set"};
}

text_elsewhere text_of_file(const std::string& path) {
  std::string content(elsewhere_bytes_max, '\0');
  std::ifstream in(path, std::ios::binary);
  const bool readable = in && (in.read(content.data(), elsewhere_bytes_max).good() || in.eof());
  content.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  if (!readable) return {std::nullopt, "names a file that cannot be read"};
  if (content.size() == elsewhere_bytes_max) return {std::nullopt, "names a file that is too large"};
  return {std::move(content), {}};
}

std::optional<elsewhere_name> elsewhere_name_of(std::string_view name) {
  constexpr std::string_view variable = "_env";
  constexpr std::string_view file = "_file";
  if (name.ends_with(variable)) return elsewhere_name{name.substr(0, name.size() - variable.size()), true};
  if (name.ends_with(file)) return elsewhere_name{name.substr(0, name.size() - file.size()), false};
  return std::nullopt;
}

}  // namespace settle::config

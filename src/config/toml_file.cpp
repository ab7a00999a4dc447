#include "config/toml_file.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

namespace settle::config {
namespace {

constexpr std::size_t file_bytes_max = 1024 * 1024;

std::optional<std::string> content_of(const std::string& path, std::vector<std::string>& problems) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    problems.push_back(fmt::format("{} is a folder, not a configuration file", path));
    return std::nullopt;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    problems.push_back(fmt::format("cannot read the configuration file {}: {}", path, std::strerror(errno)));
    return std::nullopt;
  }
  std::string content(file_bytes_max + 1, '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(in.gcount()));
  if (content.size() <= file_bytes_max) return content;
  problems.push_back(fmt::format("{} is larger than {} bytes", path, file_bytes_max));
  return std::nullopt;
}

class walk {
 public:
  walk(const std::string& path, std::vector<std::string>& problems) : path_(path), problems_(problems) {}

  void table(const toml::table& from, const std::string& prefix) {
    for (const auto& [name, node] : from) {
      const auto key = prefix + std::string(name.str());
      const auto* inner = node.as_table();
      if (inner != nullptr && inner->empty())
        entries.push_back({key, "", false, name.source().begin.line, true});
      else if (inner != nullptr)
        table(*inner, key + ".");
      else if (const auto* many = node.as_array(); many != nullptr && many->is_array_of_tables())
        for (std::size_t i = 0; i < many->size(); ++i)
          table(*many->get(i)->as_table(), fmt::format("{}.{}.", key, i));
      else
        value(key, node, name.source().begin.line);
    }
  }

  std::vector<toml_entry> entries;

 private:
  void value(const std::string& key, const toml::node& node, std::size_t line) {
    if (const auto text = node.value_exact<std::string>())
      entries.push_back({key, *text, true, line});
    else if (const auto number = node.value_exact<std::int64_t>())
      entries.push_back({key, std::to_string(*number), false, line});
    else if (const auto flag = node.value_exact<bool>())
      entries.push_back({key, *flag ? "true" : "false", false, line});
    else
      problems_.push_back(fmt::format(
          "{}:{}: {} must be a text in quotes or a whole number, or true or false", path_, line, key));
  }

  const std::string& path_;
  std::vector<std::string>& problems_;
};

}  // namespace

std::vector<toml_entry> read_toml_file(const std::string& path, std::vector<std::string>& problems) {
  const auto content = content_of(path, problems);
  if (!content) return {};
  try {
    const auto parsed = toml::parse(std::string_view(*content), std::string_view(path));
    walk found(path, problems);
    found.table(parsed, "");
    std::ranges::sort(found.entries, {}, &toml_entry::line);  // problems in the order of the file
    return std::move(found.entries);
  } catch (const toml::parse_error& e) {
    problems.push_back(fmt::format("{}:{}: {}", path, e.source().begin.line, e.description()));
    return {};
  }
}

}  // namespace settle::config

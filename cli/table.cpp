#include "cli/table.hpp"

#include <algorithm>

namespace settle::cli {
namespace {

// Code points, not bytes: a name like "café" must not shift its row.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string table(const std::vector<align>& columns, const std::vector<std::vector<std::string>>& rows,
                  std::size_t indent) {
  std::vector<std::size_t> widths(columns.size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < columns.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent, ' ');
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string padding(widths[c] - width_of(row[c]), ' ');
      if (c > 0) line += "  ";
      line += columns[c] == align::left ? row[c] + padding : padding + row[c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace settle::cli

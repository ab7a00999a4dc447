// The drawing of a machine. States whose names are plain words stand for themselves; any other one has a
// number and shows its name as a label, in which whatever could mean something to Mermaid is written as a
// character code.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "guard/machine.hpp"

namespace settle::guards {
namespace {

constexpr std::array<std::string_view, 20> words_of_mermaid{
    "accdescr", "acctitle", "as",   "class", "classdef", "click", "default",  "direction", "end",   "hide",
    "href",     "note",     "over", "scale", "state",    "style", "subgraph", "title",     "width", "graph"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_plain(std::string_view name) {
  if (!is_letter(name.front())) return false;
  if (!std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c) || c == '_'; }))
    return false;
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::ranges::find(words_of_mermaid, lower) == words_of_mermaid.end();
}

// Letters of other alphabets are several bytes above 127 and stand as they are.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (is_letter(c) || is_digit(c) || c == ' ' || c == '_' || c == '.' || c == ',' || c == '-' || code > 127)
      out += c;
    else
      out += fmt::format("#{};", static_cast<int>(code));
  }
  return out;
}

class drawing {
 public:
  explicit drawing(const guard_options& declared) : declared_(declared) {}

  std::string text() {
    std::string out = "stateDiagram-v2\n";
    for (std::size_t i = 0; i < declared_.states.size(); ++i)
      if (!is_plain(declared_.states[i]))
        out += fmt::format("    state \"{}\" as {}\n", escaped(declared_.states[i]), number(i));
    for (const auto& one : declared_.initial) out += fmt::format("    [*] --> {}\n", name_of(one));
    for (const auto& one : declared_.transitions) out += arrow(one);
    for (const auto& one : declared_.ends) out += fmt::format("    {} --> [*]\n", name_of(one));
    return out;
  }

 private:
  // A plain name cannot begin with an underscore, so no number is a name.
  static std::string number(std::size_t index) { return fmt::format("_s{}", index + 1); }

  std::string name_of(const std::string& state) const {
    if (is_plain(state)) return state;
    const auto at = std::ranges::find(declared_.states, state) - declared_.states.begin();
    return number(static_cast<std::size_t>(at));
  }

  std::string arrow(const transition& of) const {
    std::string line = fmt::format("    {} --> {}", name_of(of.from), name_of(of.to));
    for (std::size_t i = 0; i < of.who.size(); ++i) line += (i == 0 ? " : " : ", ") + escaped(of.who[i]);
    return line + "\n";
  }

  const guard_options& declared_;
};

}  // namespace

std::string to_mermaid(const guard_options& declared) { return drawing(declared).text(); }

}  // namespace settle::guards

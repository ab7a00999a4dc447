// A dead letter as people and as machines read it.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "settle/dead_letter.hpp"

namespace settle::cli {

// One line each.
class letter_table {
 public:
  letter_table();
  void add(const dead_letter& of);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Everything about one, on several lines.
std::string letter_text(const dead_letter& of, timestamp now);

// Without history, headers and payload; and everything, on one line.
boost::json::object letter_summary_json(const dead_letter& of);
std::string letter_json(const dead_letter& of);

// The first few of those that a dry run is about: as a table with how many more there are, and for machines.
constexpr std::size_t dry_run_shown_max = 20;
std::string first_letters_text(const std::vector<dead_letter>& letters, std::int64_t matching);
boost::json::array summaries_json(const std::vector<dead_letter>& letters);

}  // namespace settle::cli

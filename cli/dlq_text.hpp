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

}  // namespace settle::cli

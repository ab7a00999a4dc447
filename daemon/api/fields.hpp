// The members of a JSON object that somebody has sent, read one by one; what was not read is not known.
#pragma once

#include <boost/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace settle::daemon {

// What is wrong with a request, in words for its sender: "lease_ms is a number of milliseconds".
struct bad_field : std::runtime_error {
  bad_field(std::string_view name, std::string_view why)
      : std::runtime_error(std::string(name) + " " + std::string(why)) {}
};

class fields {
 public:
  explicit fields(const boost::json::object& from, std::string_view path = {}) : from_(from), path_(path) {}

  // Each throws bad_field if the member is of another type; those without `or`, also if it is not there.
  // Views are into the object.
  std::string_view text(std::string_view name);
  std::string_view text_or(std::string_view name, std::string_view otherwise);
  std::int64_t integer_or(std::string_view name, std::int64_t otherwise);
  const boost::json::object& object(std::string_view name);
  const boost::json::array& array_or_none(std::string_view name);
  bool has(std::string_view name) const;

  // Throws bad_field for a member that nobody has asked for, with the nearest name that somebody has.
  void expect_no_others() const;

 private:
  const boost::json::value* find(std::string_view name);
  [[noreturn]] void refuse(std::string_view name, std::string_view why) const;

  const boost::json::object& from_;
  std::string path_;
  std::vector<std::string_view> asked_;  // names in the program's own text
};

}  // namespace settle::daemon

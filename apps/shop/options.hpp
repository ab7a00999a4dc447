// `--name value` and `--name=value` after a command.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace shop {

struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class options {
 public:
  options(int argc, char** argv, const std::vector<std::string>& known);

  bool has(const std::string& name) const { return given_.contains(name); }
  std::string text(const std::string& name, const std::string& otherwise = "") const;
  std::int64_t number(const std::string& name, std::int64_t otherwise) const;

 private:
  std::map<std::string, std::string> given_;
};

}  // namespace shop

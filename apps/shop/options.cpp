#include "options.hpp"

#include <algorithm>
#include <charconv>

namespace shop {

options::options(int argc, char** argv, const std::vector<std::string>& known) {
  for (int i = 2; i < argc; ++i) {
    std::string word = argv[i];
    if (!word.starts_with("--")) throw usage_error("nobody knows what '" + word + "' means here");
    word.erase(0, 2);
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    if (std::ranges::find(known, name) == known.end()) throw usage_error("there is no option --" + name);
    if (equals != std::string::npos) {
      given_[name] = word.substr(equals + 1);
    } else {
      if (i + 1 >= argc) throw usage_error("--" + name + " wants a value");
      given_[name] = argv[++i];
    }
  }
}

std::string options::text(const std::string& name, const std::string& otherwise) const {
  const auto found = given_.find(name);
  return found == given_.end() ? otherwise : found->second;
}

std::int64_t options::number(const std::string& name, std::int64_t otherwise) const {
  const auto found = given_.find(name);
  if (found == given_.end()) return otherwise;
  std::int64_t value = 0;
  const auto* end = found->second.data() + found->second.size();
  const auto [at, failed] = std::from_chars(found->second.data(), end, value);
  if (failed != std::errc() || at != end || value < 0)
    throw usage_error("--" + name + " wants a number, not '" + found->second + "'");
  return value;
}

}  // namespace shop

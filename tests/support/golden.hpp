// The fixtures that the client helpers of all languages share: sdk/fixtures/.
#pragma once

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace settle::test {

// `folder` is the root of the sources.
inline boost::json::object golden(const std::string& folder, const std::string& name) {
  std::ifstream file(folder + "/sdk/fixtures/" + name);
  if (!file) throw std::runtime_error("no fixture " + name);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return boost::json::parse(text).as_object();
}

// `{n×text}` in a fixture's text stands for the text, n times.
inline std::string golden_text(const boost::json::value& from) {
  std::string text(from.as_string());
  constexpr std::string_view times = "×";
  const auto begin = text.find('{');
  const auto middle = text.find(times);
  const auto end = text.find('}');
  if (begin == std::string::npos || middle == std::string::npos || end == std::string::npos) return text;
  const int count = std::stoi(text.substr(begin + 1, middle - begin - 1));
  const auto what = text.substr(middle + times.size(), end - middle - times.size());
  std::string repeated;
  for (int i = 0; i < count; ++i) repeated += what;
  return text.substr(0, begin) + repeated + text.substr(end + 1);
}

}  // namespace settle::test

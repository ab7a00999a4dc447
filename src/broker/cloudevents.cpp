#include "base/time_text.hpp"
#include "settle/broker.hpp"

namespace settle::inline v0 {

std::vector<std::pair<std::string, std::string>> cloudevents_attributes(const message& of) {
  std::vector<std::pair<std::string, std::string>> all{
      {"specversion", "1.0"}, {"id", of.id}, {"source", of.source}, {"type", of.type}};
  const auto add = [&](const char* name, const std::string& content) {
    if (!content.empty()) all.emplace_back(name, content);
  };
  add("subject", of.subject);
  add("time", to_rfc3339(of.time));
  add("datacontenttype", of.content_type);
  add("partitionkey", of.key);
  for (const auto& [name, content] : of.extensions) all.emplace_back(name, content);
  return all;
}

}  // namespace settle

#include "settle/broker.hpp"

#include "settle/driver/broker.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {

// Enough for brokers that keep everything: whoever subscribes is known from then on.
void broker::create_group(const std::string& group, const std::vector<std::string>& topics) {
  subscribe({.group = group, .topics = topics, .before_revoked = {}})->leave();
}

void broker::remove_group(const std::string& group, const std::string& topic) {
  throw error(errc::invalid_argument,
              "group " + group + " on topic " + topic + ": this broker cannot remove groups");
}

std::unique_ptr<backlog> broker::backlog_of(const std::string&, const std::vector<std::string>&,
                                            const call_limits&) {
  return nullptr;
}

}  // namespace settle::inline v0

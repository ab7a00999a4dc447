// Which broker a topic goes to, and under which name. A service says it in routes; the first one that fits a
// topic is taken, and what fits none goes to the service's own broker under its own name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "settle/driver/broker.hpp"

namespace settle::inline v0 {

struct topic_route {
  std::string topic;   // a name, or a pattern with one `*`, which stands for any text
  std::string broker;  // the name of one; empty: the service's own
  std::string as;      // the topic's name there; a `*` is what that of the pattern stood for. Empty: as it is
};

// Why it makes no sense, in words that follow "a route's"; nothing if it does.
std::optional<std::string> problem_of(const topic_route& of);

// Whether the route is for this topic, and what it is called then.
std::optional<std::string> renamed_by(const topic_route& by, std::string_view topic);

// Publishes each message where its route says. Messages of one topic stay in order, because one broker gets
// them all. Dead letters and replays have the names that their consumer knows: they go where their topic
// goes, and keep it.
class routed_publisher final : public publisher {
 public:
  struct destination {
    topic_route route;
    publisher* to;
  };

  // All publishers outlive this one.
  routed_publisher(publisher& usual, std::vector<destination> routes)
      : usual_(usual), routes_(std::move(routes)) {}

  std::vector<publish_result> publish(std::span<const message> batch, const call_limits& limits) override;

 private:
  struct place {
    publisher* to;
    std::optional<std::string> renamed;  // nothing: as it is
  };
  place place_of(const message& what) const;

  publisher& usual_;
  std::vector<destination> routes_;
};

}  // namespace settle::inline v0

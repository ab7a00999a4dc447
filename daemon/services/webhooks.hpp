// Webhooks as settled takes them: POST /webhooks/NAME journals, a worker publishes what was journaled.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/webhook_settings.hpp"
#include "daemon/api/route_place.hpp"
#include "settle/http.hpp"
#include "settle/webhook.hpp"

namespace settle::daemon {

class webhooks {
 public:
  // The database to journal in; null while there is none that could be asked.
  using store = std::function<database*()>;

  explicit webhooks(std::span<const config::webhook_settings> sources);

  bool empty() const { return entrances_.empty(); }

  // Answers 200 when the journal has it, also for a copy; 401 and an empty body if it is not
  // rightly signed; 503 if the store is away. An unknown source is answered with a problem. These live as
  // long as the routes.
  void add_routes(http::router& to, const route_place& at, const store& in) const;

  // Forwards each source to its topic. Leaves the removal of what is over to the sweeper.
  std::unique_ptr<service> make_worker(database& db) const;

 private:
  struct entrance {
    webhook::inbox inbox;
    std::string topic;
  };
  std::vector<entrance> entrances_;
};

}  // namespace settle::daemon

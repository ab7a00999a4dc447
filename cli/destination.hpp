// Where the events of a service go: to its broker, or where the routes of the daemon's file say. A relay of
// the command line must not bring an event to another place than the daemon would.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "broker/routing.hpp"
#include "cli/context.hpp"
#include "compose/service_broker.hpp"

namespace settle::cli {

class destination {
 public:
  // Opens every broker that the service publishes to; throws a failure if one of them is not ready.
  destination(const context& shared, const environment& env);

  publisher& publishing() { return routed_ ? *routed_ : usual_->publishing(); }

 private:
  broker& open(const std::string& url, compose::broker_options with, const std::string& database);

  std::map<std::string, std::unique_ptr<broker>, std::less<>> opened_;  // by their files
  broker* usual_ = nullptr;
  std::unique_ptr<publisher> routed_;  // none: all goes to one broker
};

}  // namespace settle::cli

// Where the routes of one service are: what stands before their paths, and whose threads run them.
#pragma once

#include <memory>
#include <string>

#include "settle/http.hpp"

namespace settle::daemon {

struct route_place {
  std::string prefix = {};
  std::shared_ptr<http::worker_group> workers = {};  // null: the server's own
};

}  // namespace settle::daemon

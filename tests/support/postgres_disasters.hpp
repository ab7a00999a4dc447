// An outbox whose server is killed, replaced or restored elsewhere while a relay works on it, and what is
// wrong afterwards.
#pragma once

#include <string>
#include <vector>

#include "settle/error.hpp"

namespace settle::test {

struct aftermath {
  std::vector<std::string> ghosts;     // delivered, and not in the database that is left
  std::vector<std::string> lost;       // in the database that is left, and never delivered
  std::vector<std::string> reordered;  // came before the one that was published before it
  std::vector<errc> errors;            // with which relays stopped
  std::string on_a_standby;            // what a relay says that has landed there
};

// Writers and relay have synchronous_commit=off; the server dies by SIGKILL and starts again.
aftermath kill_with_unsynced_commits();

// A standby is promoted, and a connection string with both hosts leads the running relay to it.
aftermath promote_the_standby();

// A dump of a running system is restored into a cluster whose transaction ids are younger.
aftermath restore_into_a_fresh_cluster();

}  // namespace settle::test

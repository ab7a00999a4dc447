// What the storm does, all of it from one seed: which order is whose, and who is hit when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace storm {

struct settings {
  std::uint64_t seed = 0;
  int orders = 10'000;
  int strikes = 20;
  std::string data;                            // a folder with orders.db, warehouse.db and broker.db
  std::string broker = {};                     // a server instead of that file; may hold a password
  std::string broker_prefix = "order_storm.";  // of whatever is made there

  // Over the services of a daemon's file (services.hpp). Empty: one service, and relays of the storm's own.
  std::string config = {};
  std::string settled = {};      // the program
  std::string second_host = {};  // words before the command of every second process: "ip netns exec other"
  int reloads = 0;               // how often a daemon is told to read a file that has changed
  int seconds = 0;               // the orders come over this time; 0: as fast as they are committed
  std::int64_t began_ms = 0;     // when that time began, since 1970
};

// Where the processes of a storm find the URL of --broker, which must not stand in the process list.
constexpr const char* broker_variable = "STORM_BROKER";
constexpr const char* broker_prefix_variable = "STORM_BROKER_PREFIX";

constexpr int producers = 2;
constexpr int relays = 2;
constexpr int consumers = 2;
constexpr int customers = 97;  // keys: the orders of one customer must stay in order

struct order {
  std::string id;
  std::string customer;
  std::int64_t total_cents = 0;
};

order make_order(const settings& of, int number);

enum class role { producer, relay, consumer };
const char* name_of(role r);

enum class blow {
  kill,    // SIGKILL; a new process takes its place
  pause,   // SIGSTOP past its lease, then SIGCONT: a zombie that still believes it owns its part
  reload,  // of a daemon: its file has changed, and SIGHUP
};

struct strike {
  std::int64_t at_progress = 0;  // orders committed plus orders applied
  role victim = role::producer;
  int index = 0;
  blow how = blow::kill;
};

// Sorted by progress. Tied to progress instead of time, so that a slow machine is hit as often.
std::vector<strike> make_strikes(const settings& of);
// For the services of a file, where role::relay is a daemon.
std::vector<strike> make_service_strikes(const settings& of);

}  // namespace storm

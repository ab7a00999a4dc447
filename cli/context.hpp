// What every command shares: the global options and the stores that they name.
#pragma once

#include <functional>
#include <string>

#include "compose/service_database.hpp"

namespace settle::cli {

struct context {
  std::string data = "settle-data";
  std::string database;  // empty: settle.db in the data folder
  std::string broker;    // empty: broker.db in the data folder
  bool json = false;

  // The options above that were given as arguments, as they can be typed again: " --database shop.db".
  // Without secrets, and without what the environment says anyway.
  std::string given;

  // Set by the chosen subcommand while the arguments are parsed; runs afterwards, when every global
  // option is known. Returns the exit code.
  std::function<int()> run;

  // What this call has done for good. It is told with whatever goes wrong afterwards, so that nobody takes a
  // failure to write the answer for a failure of the act, and repeats it.
  std::string done;
  // Also from here on a reader that has gone away does not end the process before that is told.
  void note_done(std::string what);

  // A file, or a connection string, which may hold a password: print database::name() instead.
  std::string service_path() const { return database.empty() ? data + "/settle.db" : database; }
  bool on_postgres() const { return compose::is_postgres(service_path()); }
  std::string broker_path() const { return broker.empty() ? data + "/broker.db" : broker; }
};

}  // namespace settle::cli

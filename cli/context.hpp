// What every command shares: the global options and the files that they name.
#pragma once

#include <functional>
#include <string>

namespace settle::cli {

struct context {
  std::string data = "settle-data";
  std::string database;  // empty: settle.db in the data folder
  std::string broker;    // empty: broker.db in the data folder
  bool json = false;

  // Set by the chosen subcommand while the arguments are parsed; runs afterwards, when every global
  // option is known. Returns the exit code.
  std::function<int()> run;

  std::string service_path() const { return database.empty() ? data + "/settle.db" : database; }
  std::string broker_path() const { return broker.empty() ? data + "/broker.db" : broker; }
};

}  // namespace settle::cli

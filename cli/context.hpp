// What every command shares: the global options and the stores that they name.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "compose/service_broker.hpp"
#include "compose/service_database.hpp"
#include "config/configuration.hpp"

namespace settle::cli {

struct context {
  std::string data = "settle-data";
  std::string database;  // empty: settle.db in the data folder
  std::string broker;    // empty: broker.db in the data folder
  std::string config;    // the daemon's file, which names the stores instead; empty: none
  std::string service;   // one of that file; empty: the only one, or all of them
  bool json = false;

  // --data is an argument, so it wins over the file.
  bool data_given = false;
  // Why the options above cannot be given together; empty: they can.
  std::string conflict;

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

  // Questions to stores that have not answered, with all that their threads use. While there are some, the
  // process ends without destroying anything: see main.cpp.
  std::shared_ptr<void> unanswered;

  // The daemon's file; null if none is given. Throws a failure if it cannot be used.
  const config::configuration* file() const;
  // The service of the file that is meant; null if no file is given. Throws a failure that lists the names if
  // there are several, or suggests the nearest one.
  const config::service_settings* chosen_service() const;
  // Of the file, which is given; throws as chosen_service() does.
  const config::service_settings& service_named(const std::string& name) const;
  // Its broker, or the only one there is; null if no file is given.
  const config::broker_settings* chosen_broker() const;
  // Whether the file has services with names and none of them is named.
  bool means_all_services() const;

  std::string data_folder() const;
  // Whether one of the stores is a file in the data folder that may have to be created first.
  bool uses_data_folder() const;
  // A file, or a connection string, which may hold a password: print database::name() instead.
  std::string service_path() const;
  bool on_postgres() const { return compose::is_postgres(service_path()); }
  std::string broker_path() const;
  // How that broker is opened: as the file says, if one is given.
  compose::broker_options broker_options() const;

 private:
  mutable std::shared_ptr<const config::configuration> file_;  // once it is read
};

// Whether a store is a file directly in this folder.
bool is_file_in(const std::string& path, const std::string& folder);

// The options that lead to one service of the file, when they are typed.
std::string given_for(const context& shared, const std::string& service);

}  // namespace settle::cli

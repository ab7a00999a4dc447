// SQLite as the store, and the embedded broker: nothing to install, nothing to start.
//
//   auto db     = settle::sqlite::open("orders.db");
//   auto broker = settle::sqlite::open_broker("broker.db");
//
// Any number of processes on one machine may open the same files. Every commit is synced
// (synchronous=FULL). Writers queue instead of polling for the lock.
//
// Checkpoints: SQLite before 3.51.3 can corrupt a database when a checkpoint races a commit that resets
// the write-ahead log. Settle turns automatic checkpoints off and takes them itself while it holds the
// write lock. Do not write these files with programs that checkpoint by themselves.
#pragma once

#include <memory>
#include <string>

#include "settle/broker.hpp"
#include "settle/database.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::sqlite {

struct options {
  environment env = {};
  // How long a writer waits for its turn before it gets store_busy (retryable).
  duration busy_timeout = std::chrono::seconds(10);
  // Pages (4 KiB) in the write-ahead log after which a commit also takes a checkpoint.
  int checkpoint_pages = 1000;
};

// Opens a database, creating the file if needed. The directory must exist.
std::unique_ptr<database> open(const std::string& path, const options& opts = {});

struct broker_options {
  environment env = {};
  duration busy_timeout = std::chrono::seconds(10);
  // Partitions of a topic that is published to or subscribed for the first time; fixed from then on.
  // It bounds how many members of a group can work in parallel on one topic.
  int partitions = 8;
  // How long a silent member keeps its partitions. Renewed three times in this time.
  duration lease_ttl = std::chrono::seconds(10);
};

// Opens the embedded broker, creating and migrating its file if needed.
std::unique_ptr<broker> open_broker(const std::string& path, const broker_options& opts = {});

}  // namespace settle::sqlite

#pragma GCC visibility pop

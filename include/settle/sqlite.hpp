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

struct sqlite3;  // SQLite's own handle

#pragma GCC visibility push(default)
namespace settle::inline v0::sqlite {

struct options {
  environment env = {};
  // How long a writer waits for its turn, and anybody for a free connection, before store_busy (retryable).
  duration busy_timeout = std::chrono::seconds(10);
  // Connections, so transactions, at the same time. Each is a handful of file descriptors and a cache of up
  // to 2 MB; with one writer at a time, more of them help only readers.
  int connections_max = 16;
  // Pages (4 KiB) in the write-ahead log after which a commit also takes a checkpoint.
  int checkpoint_pages = 1000;
  // Name of a registered SQLite VFS, for simulations. With one set there is no lock file and nothing to
  // watch, since only this process can see the file. Empty: the real file system.
  std::string vfs = {};
};

// Opens a database, creating the file if needed. The directory must exist.
std::unique_ptr<database> open(const std::string& path, const options& opts = {});

// Your own connection with an open transaction, taken as it is: publish in it, then end it yourself.
//
//   sqlite3_exec(mine, "begin immediate", nullptr, nullptr, nullptr);
//   …
//   settle::sqlite::joined_transaction tx(mine);
//   settle::publish(tx, order_placed{id, 4200});
//   …
//   sqlite3_exec(mine, "commit", nullptr, nullptr, nullptr);
//
// The transaction must have been begun with BEGIN IMMEDIATE, on a file that settle::migrate() has seen.
// Automatic checkpoints are switched off on the connection and stay off: Settle's own commits take
// them. With synchronous=normal a power cut may undo commits of the connection; then nobody ever sees
// their events, because a relay publishes only what a synced commit of its own covers. A connection with
// synchronous=off is refused: there a power cut may damage the file itself.
// The program must link the same SQLite library as Settle: two copies in one process break its locks.
class joined_transaction final : public transaction {
 public:
  explicit joined_transaction(sqlite3* open, const environment& env = {});
  ~joined_transaction();

 private:
  environment own_env_;
};

struct broker_options {
  environment env = {};
  duration busy_timeout = std::chrono::seconds(10);
  // Partitions of a topic that is published to or subscribed for the first time; fixed from then on.
  // It bounds how many members of a group can work in parallel on one topic.
  int partitions = 8;
  // How long a silent member keeps its partitions. Renewed three times in this time.
  duration lease_ttl = std::chrono::seconds(10);
  // How long a message is kept at least. It goes when it is older and every group that ever subscribed to
  // its topic has acknowledged it; a group that stays away keeps its messages until `settle group remove`.
  duration keep = std::chrono::hours(12);
  // When the messages take more bytes than this, publishing is refused as a failure of the destination:
  // relays pause, nothing is lost, and they resume when there is room again. From nine tenths on that holds
  // for topics of which a group without members has messages to read, and the reason names the group.
  std::int64_t bytes_max = std::int64_t{8} * 1024 * 1024 * 1024;
  std::string vfs = {};  // as in options
};

// Opens the embedded broker, creating and migrating its file if needed.
std::unique_ptr<broker> open_broker(const std::string& path, const broker_options& opts = {});

}  // namespace settle::inline v0::sqlite

#pragma GCC visibility pop

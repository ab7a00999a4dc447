// The plain libpq interface, as a careful programmer would use it for speed, and what the benches on
// PostgreSQL share: databases of their own, rows to relay, the server's counters.
//
// The server is the one that SETTLE_TEST_POSTGRES names (see tools/servers); without it nothing is measured.
#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness.hpp"
#include "settle/driver/broker.hpp"

namespace bench {

class raw_connection {
 public:
  explicit raw_connection(const std::string& conninfo);

  std::string run(const std::string& sql);  // the first value of the answer, if there is one
  std::int64_t number(const std::string& sql) { return std::stoll(run(sql)); }

  void prepare(const char* name, const char* sql);
  void run_prepared(const char* name, const std::vector<std::string>& values);

  // In one transaction and one round trip.
  struct call {
    const char* name;
    std::vector<std::string> values;
  };
  void run_pipelined(const std::vector<call>& prepared);

  // Every row of the outbox after this number, in order and in binary; gives their count.
  std::int64_t read_outbox(std::int64_t after);

  PGconn* get() const { return conn_.get(); }

 private:
  struct close {
    void operator()(PGconn* conn) const noexcept { PQfinish(conn); }
  };
  std::unique_ptr<PGconn, close> conn_;
  bool reads_outbox_ = false;
};

// A database of a bench's own on the server, with Settle's tables.
class scratch {
 public:
  scratch(const std::string& server, const std::string& name);
  ~scratch();
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  std::string conninfo() const { return server_ + " dbname=" + name_; }

 private:
  std::string server_;
  std::string name_;
};

// Runs `body` with the server's connection string and writes its reports; none if there is no server.
int run_on_postgres(int argc, char** argv,
                    const std::function<std::vector<report>(const options&, const std::string&)>& body);

// Confirms everything at once, so that only the outbox is measured.
class nowhere final : public settle::publisher {
 public:
  std::vector<settle::publish_result> publish(std::span<const settle::message> messages,
                                              const settle::call_limits&) override {
    taken += static_cast<std::int64_t>(messages.size());
    return std::vector<settle::publish_result>(messages.size());
  }
  std::atomic<std::int64_t> taken = 0;
};

// Events of 256 bytes with 1,000 keys. Faster than to publish them one by one; what the relay reads is the
// same.
void fill_outbox(raw_connection& raw, std::int64_t events);
std::string filled_payload();

// What `compare` counts of this process, without what the server does in its place.
void keep_processor_time_only(report& of);

std::int64_t wal_position(raw_connection& raw);  // bytes since the cluster was made

// Of the connection's database, except syncs and log: those are of all of the server. A server process
// reports what it has done about once a second and when it ends, so those that are to be counted must have
// ended.
struct server_counts {
  std::int64_t wal_bytes = 0;
  std::int64_t transactions = 0;
  std::int64_t syncs = 0;
  std::int64_t page_images =
      0;  // written to the log whole, the first time after a checkpoint; of all of the server
  std::int64_t pages_found = 0;  // in shared buffers
  std::int64_t pages_read = 0;   // from elsewhere
};
server_counts count_without_others(raw_connection& raw);

}  // namespace bench

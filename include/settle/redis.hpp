// Redis, for what may live there: advisory locks, idempotency keys. A small client: commands, scripts, a
// pool.
//
//   auto redis = settle::redis::open("redis://:secret@cache.internal:6379/2");
//   redis->run({"SET", "greeting", "hello"});
//   const auto hello = redis->run({"GET", "greeting"}).text;
//
// Arguments are bytes, any bytes. Nothing connects until the first command does; a server that is away costs
// a retryable error then, and is found again by a later one.
//
// What Redis does not promise: with appendfsync=everysec a crash of the server forgets its last second, and
// replicas may be behind when one of them takes over. What must not be forgotten belongs into a database. At
// connect the client refuses a server that evicts keys (maxmemory-policy), that keeps nothing (appendonly) or
// that never syncs (appendfsync=no, where the server lets itself be asked), because all of them forget
// silently.
//
// Threads: any number. Errors: settle::error; store_unavailable is retryable, and says outcome_unknown() if
// the command was sent and no answer came. Passwords are in no error. There is no TLS: use a local proxy or a
// tunnel.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "settle/environment.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0::redis {

struct options {
  environment env = {};
  // How long a new connection may take, name resolution not counted.
  duration connect_timeout = std::chrono::seconds(5);
  // How long the answer to a command may take, and how long to wait for a free connection (store_busy).
  duration command_timeout = std::chrono::seconds(5);
  // Connections, so commands, at the same time.
  int connections_max = 16;
  // Takes a server also if it may forget: one that evicts keys, has no append-only file or never syncs it.
  bool accept_forgetful_server = false;
};

// What the server answered.
struct reply {
  enum class kind { nil, integer, text, list };
  kind type = kind::nil;
  std::int64_t integer = 0;
  std::string text = {};          // bytes, or a status like OK
  std::vector<reply> items = {};  // of a list
  bool is_nil() const { return type == kind::nil; }
};

// A Lua script that the server keeps. It runs as one step: nobody sees it half done. Made once, used often.
class script {
 public:
  explicit script(std::string source) : source_(std::move(source)) {}
  const std::string& source() const { return source_; }

 private:
  std::string source_;
};

class client {
 public:
  virtual ~client() = default;

  // One command, one round trip.
  virtual reply run(std::span<const std::string_view> words) = 0;
  reply run(std::initializer_list<std::string_view> words) {
    return run(std::span<const std::string_view>(words.begin(), words.size()));
  }

  // One round trip; two more when the server does not have the script yet.
  virtual reply run(const script& what, std::span<const std::string> keys,
                    std::span<const std::string> values) = 0;

  virtual const environment& env() const = 0;
  // For errors and logs: host, port and database; never a password.
  virtual std::string name() const = 0;
};

// redis://[[user]:password@]host[:port][/database], percent-encoded where needed; IPv6 in brackets. Throws
// invalid_argument if the URL cannot be read.
std::unique_ptr<client> open(const std::string& url, const options& opts = {});

}  // namespace settle::inline v0::redis

#pragma GCC visibility pop

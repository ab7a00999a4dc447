// Counts the statements that clients send to a PostgreSQL server: it stands on the line between them and
// counts the messages that run one (Query and Execute of the protocol), so BEGIN, SET and COMMIT are counted,
// too.
#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <thread>

namespace bench {

class statement_counter {
 public:
  explicit statement_counter(PGconn* server);  // any connection to it
  ~statement_counter();
  statement_counter(const statement_counter&) = delete;
  statement_counter& operator=(const statement_counter&) = delete;

  // To be added to a connection string, so that it leads through here.
  std::string detour() const;
  std::int64_t statements() const { return statements_.load(); }

 private:
  // Where in the client's stream of messages we are. The first one has no type.
  struct position {
    std::string head;           // of the message that has begun
    std::uint32_t to_skip = 0;  // of its body
    bool greeted = false;
  };
  struct line {
    int client;
    int server;
    position at;
  };

  int connect_to_server() const;
  void run(const std::stop_token& stop);
  void accept_one();
  bool forward(line& on, bool from_client);
  void count(position& at, std::string_view bytes);

  std::string host_;
  std::string port_;
  int listener_ = -1;
  std::list<line> lines_;  // the thread's own
  std::atomic<std::int64_t> statements_ = 0;
  std::jthread thread_;
};

}  // namespace bench

// Clients of one kind of request: each keeps its connection and asks again as soon as it has its answer.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

class http_load {
 public:
  http_load(std::uint16_t port, int connections, std::string path);
  ~http_load();
  http_load(const http_load&) = delete;
  http_load& operator=(const http_load&) = delete;

  // Returns when that many have been answered. Throws if an answer is not 200.
  void run(std::int64_t requests);

 private:
  struct client {
    int socket = -1;
    std::string seen;
  };
  void ask(const client& who) const;
  bool is_answered(client& who);

  std::string request_;
  int epoll_;
  std::vector<client> clients_;
};

// Waits until something listens there.
void await_listener(std::uint16_t port);
std::uint16_t free_port();

// The calling process, and those that it starts, on one core only. Nothing happens where there is just one.
void pin_to_core(int core);

}  // namespace bench

// Clients that keep their connections and ask again as soon as they have their answers.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

class http_load {
 public:
  // What a client asks next, after it has heard this body; empty at first.
  using script = std::function<std::string(std::size_t client, std::string_view heard)>;

  http_load(std::uint16_t port, int connections, script next);
  http_load(std::uint16_t port, int connections, const std::string& path);  // the same GET again and again
  ~http_load();
  http_load(const http_load&) = delete;
  http_load& operator=(const http_load&) = delete;

  // Returns when that many have been answered. Throws if an answer is not 200.
  void run(std::int64_t requests);

 private:
  struct client {
    std::size_t number = 0;
    int socket = -1;
    std::string seen;
    std::string heard;
  };
  void ask(client& who);
  bool is_answered(client& who);

  script next_;
  int epoll_;
  std::vector<client> clients_;
};

// Further headers each end with a line break.
std::string post_of(const std::string& path, const std::string& body, const std::string& headers = {});

// Waits until something listens there.
void await_listener(std::uint16_t port);
std::uint16_t free_port();

// The calling process, and those that it starts, on one core only. Nothing happens where there is just one.
void pin_to_core(int core);

}  // namespace bench

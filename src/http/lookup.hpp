// Addresses of names, within a time: the system's own lookup has no limit, so it runs on a thread.
#pragma once

#include <netinet/in.h>

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/time_limit.hpp"

namespace settle::inline v0::http {

struct endpoint_address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  std::string text() const;  // "127.0.0.1:80"
};

struct lookup_result {
  waited how = waited::ready;
  std::vector<endpoint_address> addresses = {};
  std::string why = {};  // if there are none
};

// Its end waits for lookups that nobody waits for any more.
class lookup {
 public:
  lookup_result find(const std::string& host, std::uint16_t port, const std::stop_token& stop,
                     steady::time_point until);

 private:
  struct question;
  // Why it could not be asked; empty: it was.
  std::string ask(const std::shared_ptr<question>& what, const std::string& host, std::uint16_t port);
  void forget_answered();

  std::mutex mutex_;
  struct asked {
    std::shared_ptr<question> what;
    std::jthread by;
  };
  std::list<asked> asked_;
};

}  // namespace settle::inline v0::http

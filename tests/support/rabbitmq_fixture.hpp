// The private RabbitMQ of tools/servers, and of it a corner for each test.
#pragma once

#include <memory>
#include <string>

#include "settle/rabbitmq.hpp"

namespace settle::test {

// From the environment, or else from `tools/servers env`; empty if there is no such server.
std::string rabbitmq_url();

// The same over TLS, and the file with the authority that vouches for it.
std::string rabbitmq_tls_url();
std::string rabbitmq_ca_file();

// Why tests on RabbitMQ cannot run here; empty if they can. Throws if CI=true, where they have to.
std::string rabbitmq_missing();

// The same URL with another port: of a proxy in front of the server.
std::string with_port(const std::string& url, int port);
int port_of(const std::string& url);

// Exchanges and queues with a prefix of their own, deleted at the end.
class scratch_broker {
 public:
  scratch_broker();
  ~scratch_broker();
  scratch_broker(const scratch_broker&) = delete;
  scratch_broker& operator=(const scratch_broker&) = delete;

  const std::string& prefix() const { return prefix_; }
  // Everything goes, as if nobody had ever used it.
  void clear() const;
  // The queues of all groups are empty.
  void purge() const;

 private:
  std::string prefix_;
};

}  // namespace settle::test

// The command line where the daemon's file names the stores.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include "support/cli_program.hpp"

namespace settle::test {

using words = std::vector<std::string>;

// A port that takes connections and never says a word, as a server that was stopped does.
class silent_server {
 public:
  silent_server() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&here), size), 0);
    EXPECT_EQ(::listen(fd_, 16), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&here), &size), 0);
    port_ = ntohs(here.sin_port);
  }
  ~silent_server() { ::close(fd_); }
  silent_server(const silent_server&) = delete;
  silent_server& operator=(const silent_server&) = delete;

  std::string conninfo() const {
    return "host=127.0.0.1 port=" + std::to_string(port_) +
           " dbname=stock user=stock password=open-sesame sslmode=disable";
  }

 private:
  int fd_;
  int port_ = 0;
};

struct cli_services : cli_program {
  std::string config() const { return dir.file("settled.toml"); }

  void write_config(const std::string& text) const { write_file(config(), text); }

  std::string service_table(const std::string& name, const std::string& more = "") const {
    return "[service." + name + "]\ndatabase = \"" + dir.file(name + ".db") + "\"\n" + more;
  }

  // Three services and their broker, all there.
  void make_three() {
    write_config("[broker.main]\nurl = \"" + dir.file("main.db") + "\"\n" + service_table("billing") +
                 service_table("orders") + service_table("stock"));
    const auto done = call({"migrate"});
    ASSERT_EQ(done.code, 0) << done.err;
  }

  // As somebody types it, with nothing but the file.
  outcome call(words arguments, const words& variables = {}) {
    arguments.insert(arguments.begin(), {"--config", config()});
    return bare(std::move(arguments), variables);
  }

  outcome bare(words arguments, const words& variables = {}) {
    return program(SETTLE_CLI, std::move(arguments), dir.file("call"), {.variables = variables}).end();
  }

  void expect_refused(const words& arguments, const std::string& message) {
    const auto done = call(arguments);
    EXPECT_EQ(done.code, 2) << done.out;
    EXPECT_EQ(done.err, "settle: " + message + "\n");
  }

  void publish_to(const std::string& service) {
    const auto done = call({"publish", "orders", "order.placed", "--service", service});
    ASSERT_EQ(done.code, 0) << done.err;
  }

  std::string typed(const std::string& service) const {
    return " --config " + config() + " --service " + service;
  }
};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace settle::test

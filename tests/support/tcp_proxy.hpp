// A TCP proxy on loopback that cuts or stalls the line after a number of bytes.
//
//   tcp_proxy line("127.0.0.1", server_port);
//   line.arm(tcp_proxy::to_server, tcp_proxy::cut, 17);   // 17 more bytes reach the server, then both ends
//   close
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace settle::test {

class tcp_proxy {
 public:
  enum direction { to_server, to_client };
  // cut: both ends of the connection that carried the byte are closed; others, and new ones, live.
  // stall: nothing passes in that direction any more, on any connection, until disarm().
  enum fault { cut, stall };

  tcp_proxy(const std::string& host, int port);
  ~tcp_proxy();
  tcp_proxy(const tcp_proxy&) = delete;
  tcp_proxy& operator=(const tcp_proxy&) = delete;

  int port() const;

  // Strikes when `after` more bytes have passed and another one wants to. Whom a cut keeps it from is told
  // `last_words` in its place.
  void arm(direction which, fault what, std::size_t after, std::string last_words = {});
  void disarm();
  bool struck() const;

  // Closes both ends of every connection there is, and returns when that is done. New ones live.
  void cut_all();
  // Whoever connects from now on is cut at once, until told otherwise.
  void refuse(bool refusing);

  // Whoever connects from now on reaches this port of the same host.
  void lead_to(int port);

  // How often, on all connections together, the client spoke after the server or first.
  std::size_t round_trips() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace settle::test

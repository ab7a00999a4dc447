// A server on loopback that does to each connection what a test says: the part of the world that is no HTTP
// server of ours.
//
//   stub_server stub([](stub_server::line& c) { while (c.request()) c.send("HTTP/1.1 204 No
//   Content\r\n\r\n"); }); client.send({.url = stub.url("/x")});
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace settle::test {

class stub_server {
 public:
  class line {
   public:
    line(stub_server& of, int socket, int number) : of_(of), socket_(socket), number_(number) {}
    ~line() {
      if (tls_ != nullptr) SSL_free(tls_);
    }
    line(const line&) = delete;
    line& operator=(const line&) = delete;

    int number() const { return number_; }  // of the connection, from 0

    // Head and body of the next request; nothing if the client has closed.
    std::optional<std::string> request() {
      std::size_t end = 0;
      while ((end = seen_.find("\r\n\r\n")) == std::string::npos)
        if (!read_more()) return std::nullopt;
      const auto at = seen_.find("Content-Length: ");
      const std::size_t body = at < end ? std::stoul(seen_.substr(at + 16)) : 0;
      while (seen_.size() < end + 4 + body)
        if (!read_more()) return std::nullopt;
      auto whole = seen_.substr(0, end + 4 + body);
      seen_.erase(0, whole.size());
      const std::scoped_lock lock(of_.mutex_);
      return of_.requests_.emplace_back(std::move(whole));
    }
    // Until the client closes.
    void wait_for_end() {
      while (read_more()) {
      }
    }
    bool read_more() {
      char buffer[16384];
      const auto got = tls_ != nullptr ? SSL_read(tls_, buffer, sizeof buffer)
                                       : static_cast<int>(::recv(socket_, buffer, sizeof buffer, 0));
      if (got > 0) seen_.append(buffer, static_cast<std::size_t>(got));
      return got > 0;
    }
    void send(std::string_view bytes) {
      while (!bytes.empty()) {
        const auto size = static_cast<int>(bytes.size());
        const auto sent = tls_ != nullptr
                              ? SSL_write(tls_, bytes.data(), size)
                              : static_cast<int>(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
        if (sent <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      }
    }
    void answer(std::string_view body) {
      send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body));
    }
    void say_goodbye() {
      if (tls_ != nullptr) SSL_shutdown(tls_);
    }
    // Nothing more will be said, and the client knows it when this returns.
    void finish() const { ::shutdown(socket_, SHUT_WR); }
    // Closes with a reset instead of an end.
    void reset() const {
      const linger at_once{1, 0};
      ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    bool secure(ssl_ctx_st* with) {
      tls_ = SSL_new(with);
      SSL_set_fd(tls_, socket_);
      return SSL_accept(tls_) == 1;
    }

   private:
    stub_server& of_;
    int socket_;
    int number_;
    SSL* tls_ = nullptr;
    std::string seen_;
  };

  explicit stub_server(std::function<void(line&)> serve) : serve_(std::move(serve)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    ::bind(socket_, reinterpret_cast<sockaddr*>(&at), size);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    ::listen(socket_, 128);
    acceptor_ = std::jthread([this] { accept_all(); });
  }
  ~stub_server() {
    ::shutdown(socket_, SHUT_RDWR);
    acceptor_.join();
    {
      const std::scoped_lock lock(mutex_);
      for (const int one : open_) ::shutdown(one, SHUT_RDWR);
    }
    threads_.clear();
    ::close(socket_);
  }
  stub_server(const stub_server&) = delete;
  stub_server& operator=(const stub_server&) = delete;

  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url(const std::string& path) const { return "http://" + host() + path; }
  int connections() const {
    const std::scoped_lock lock(mutex_);
    return connections_;
  }
  std::vector<std::string> requests() const {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }

 private:
  void accept_all() {
    for (int socket; (socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      const std::scoped_lock lock(mutex_);
      open_.push_back(socket);
      threads_.emplace_back([this, socket, number = connections_++] { serve(socket, number); });
    }
  }
  void serve(int socket, int number) {
    sigset_t pipe;  // OpenSSL writes without asking for no signal; that the library does not is for the tests
                    // to see
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    {
      line one(*this, socket, number);
      serve_(one);
    }
    const std::scoped_lock lock(mutex_);
    std::erase(open_, socket);
    ::close(socket);
  }

  const std::function<void(line&)> serve_;
  int socket_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  int connections_ = 0;
  std::vector<std::string> requests_;
  std::vector<int> open_;
  std::list<std::jthread> threads_;
  std::jthread acceptor_;
};

}  // namespace settle::test

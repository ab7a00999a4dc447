// One connection: reads requests, has them answered, writes the answers, keeps to the limits.
//
// Never waits. Whoever owns it tells it what has happened (bytes, room to write, an answer, the time) and
// asks afterwards what it waits for: interest() and deadline().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/head_rules.hpp"
#include "http/request_parser.hpp"
#include "http/routes.hpp"
#include "http/routing.hpp"
#include "http/traffic.hpp"
#include "http/workers.hpp"
#include "settle/http_server.hpp"

namespace settle::inline v0::http {

using steady = std::chrono::steady_clock;

// What the sessions of a server share. Used by its one thread of I/O.
struct surroundings {
  const server_options& options;
  routing& routes;
  workers& pool;     // for routes that name no group
  job_source& jobs;  // of this server, in whatever group they are
  traffic& counts;
  parser_limits parsing;
  std::vector<char> buffer;      // bytes fresh from any of the sockets
  steady::time_point now = {};   // of this round
  std::string date = {};         // the same, for answers
  std::size_t bodies_bytes = 0;  // of all requests that are being read or handled
  bool draining = false;
};

// 503 in as many words as need no memory, for one that has begun a request and loses its place, or whose
// answer there is no memory for.
void say_unavailable(int descriptor) noexcept;

class session {
 public:
  session(int descriptor, std::uint64_t id, std::string remote, surroundings& with);
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  void on_readable();
  void on_writable();
  void on_answer(job& answered);
  void on_deadline();
  void on_hang_up() { close(); }
  // What was just done with it has thrown. It is told 503, if that can be said, and ends.
  void on_failure() noexcept;

  // Ends now if it is between two requests and none is in the socket; otherwise after the answer.
  void drain();
  // Ends now, and tells its handler.
  void cancel();

  // How it stands when places run out: the least goes first. One that waits for the client to take its leave
  // has been answered; one whose head is not complete has asked nothing; one between two requests may go as
  // HTTP lets it.
  struct standing {
    enum class rank { answered, asks_nothing_yet, between_requests } as;
    steady::time_point since;
    auto operator<=>(const standing&) const = default;
  };
  // Nothing: it has work here, and stays.
  std::optional<standing> dispensable() const;
  // Gives up its place, unless a request has come at this moment.
  void give_way();

  // A request has come that is not answered yet, or its answer has not been taken.
  bool is_busy() const { return stage_ != stage::lingering && !(is_idle() && !blocked_); }
  bool is_closed() const { return descriptor_ < 0; }
  int descriptor() const { return descriptor_; }
  std::uint32_t interest() const;  // of epoll
  steady::time_point deadline() const;

 private:
  enum class stage { head, body, handling, finishing, lingering };

  bool is_reading() const { return stage_ == stage::head || stage_ == stage::body; }
  bool is_idle() const { return stage_ == stage::head && !parser_.is_begun() && in_.empty(); }
  void pump(std::string_view bytes);
  void on_head();
  void on_request();
  void hand_over();
  void count_body();
  void refuse(const refusal& why);
  void respond(response answer, bool close);
  void append_answer(response answer, bool close);
  void note(const response& answer);
  void next_request();
  void flush();
  void linger();
  void close();
  std::chrono::microseconds transfer_time(std::size_t bytes) const;

  int descriptor_;
  std::uint64_t id_;
  std::string remote_;
  surroundings& with_;

  stage stage_ = stage::head;
  request_parser parser_;
  request request_;
  framing framing_;
  match to_;
  std::shared_ptr<job> job_;
  std::size_t counted_bytes_ = 0;  // of request_.body in bodies_bytes

  std::string in_;                // read and not parsed
  std::string out_;               // heads and small bodies that have not been sent
  std::string large_body_;        // behind them
  std::size_t sent_ = 0;          // of both
  std::size_t sent_blocked_ = 0;  // since the client stopped taking them
  std::size_t lingered_bytes_ = 0;
  bool blocked_ = false;         // the client does not take what is sent
  bool reads_paused_ = false;    // it has sent more than we can look at now
  bool served_ = false;          // a request before this one
  steady::time_point since_;     // the present stage, or the block
  steady::time_point asked_at_;  // the head was complete
};

}  // namespace settle::inline v0::http

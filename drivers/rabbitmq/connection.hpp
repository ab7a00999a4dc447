// One connection to the server, and the channels on it. A thread of its own reads what comes, writes what did
// not fit at once and keeps the line alive, so that a long handler costs nobody the connection. Everybody
// else waits for what the thread has put down, for as long as the caller's limits say.
//
// A connection breaks once and for all: whoever needs another one makes it. Every wait on a broken one
// throws.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rabbitmq/address.hpp"
#include "rabbitmq/frames.hpp"
#include "rabbitmq/limit.hpp"
#include "rabbitmq/line.hpp"
#include "rabbitmq/server_check.hpp"
#include "rabbitmq/wire_message.hpp"
#include "settle/error.hpp"
#include "settle/rabbitmq.hpp"

namespace settle::inline v0::rabbitmq {

// The server's answer to one call.
struct answer {
  amqp_method_number_t method = 0;
  std::uint32_t messages = 0;   // of a queue: ready to be delivered
  std::uint32_t consumers = 0;  // of a queue
};

struct arrived_message {
  std::uint64_t tag = 0;
  std::string exchange = {};
  std::string routing_key = {};
  wire_message content = {};
};

// A message that waits for those before it: see milestones.hpp.
struct milestone {
  std::uint64_t tag = 0;
  std::string text = {};
};

struct confirmation {
  std::uint64_t number = 0;
  bool and_all_before = false;
  bool positive = true;
};

// What the server says when it ends a channel or a connection.
struct refusal {
  int code = 0;
  std::string text = {};
};
inline constexpr int code_access_refused = 403;
inline constexpr int code_not_found = 404;
inline constexpr int code_locked = 405;
inline constexpr int code_precondition_failed = 406;

// The server has closed a channel because of what was asked on it.
class refused : public error {
 public:
  refused(const std::string& server, refusal why)
      : error(errc::destination_unavailable, server + ": " + why.text + advice(why.code)),
        why_(std::move(why)) {}
  const refusal& why() const { return why_; }

 private:
  static const char* advice(int code) {
    return code == code_access_refused
               ? ". The user needs the permissions configure, write and read for our names there, and write "
                 "for amq.default"
               : "";
  }
  refusal why_;
};

// What has come on a channel and was not taken yet. Bounded by the prefetch and by what is in flight.
struct channel_inbox {
  std::deque<answer> answers = {};
  std::deque<arrived_message> arrived = {};
  std::vector<std::uint64_t> probes = {};  // tags of messages that are no events
  std::vector<milestone> milestones = {};
  std::deque<confirmation> confirmations = {};
  std::vector<std::uint64_t> returned = {};  // numbers of messages that no queue wants
  std::optional<refusal> closed = std::nullopt;
  bool cancelled = false;  // its queue has gone

  // A message whose parts are still coming.
  struct coming_message {
    bool is_return = false;
    arrived_message message = {};
    std::uint64_t missing = 0;
  };
  std::optional<coming_message> coming = std::nullopt;
};

class connection {
 public:
  // `purpose` is shown by the server's own tools. Throws destination_unavailable or cancelled.
  connection(const address& to, const options& with, const std::string& purpose, const limit& within);
  ~connection();  // without a farewell
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  // Why it is broken; nothing: it is not.
  std::optional<std::string> broken() const;
  // Why the server takes no messages now (an alarm); nothing: it does.
  std::optional<std::string> blocked() const;
  const server_facts& server() const { return server_; }

  // Says goodbye and waits for the answer.
  void close(const limit& within) noexcept;

  // Returns when something may have come since `seen`, when it breaks or when the limit is reached. Gives
  // what to pass the next time.
  std::uint64_t await_arrivals(std::uint64_t seen, const limit& within);

 private:
  friend class channel;
  using lock = std::unique_lock<std::mutex>;

  void shake_hands(const address& to, const options& with, const std::string& purpose, const limit& within);
  void run(const std::stop_token& stop) noexcept;
  void turn(const std::stop_token& stop);
  void end();
  void take(const frame& one);
  void take_method(const frame& one);
  void take_channel_method(channel_inbox& at, const frame& one);
  void take_header(channel_inbox& at, const frame& one);
  void finish_message(channel_inbox& at);
  void keep_alive();
  void flush();
  void write_out();
  amqp_channel_t open_number();  // one that nobody uses
  void wake() const;
  void break_off(const std::string& why);
  void send(amqp_channel_t channel, amqp_method_number_t which, void* what);
  answer await_answer(lock& held, amqp_channel_t channel, const limit& within);

  // Waits until `is_there` says so. Throws if it breaks, or if the limit is reached first.
  template <class Condition>
  void await(lock& held, const limit& within, Condition is_there) {
    const bool came =
        changed_.wait_until(held, within.stop, within.until, [&] { return broken_ || is_there(); });
    if (broken_) throw error(errc::destination_unavailable, *broken_);
    if (came) return;
    if (within.stop.stop_requested()) throw error(errc::cancelled, name_ + ": stopped by the caller");
    throw error(errc::destination_unavailable, name_ + " does not answer in time");
  }

  std::string name_;
  line line_;
  int wake_ = -1;  // an eventfd that ends the thread's poll
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  frame_writer writer_;
  frame_reader reader_;
  std::string out_;  // written and not sent yet
  std::map<amqp_channel_t, channel_inbox> inboxes_{{amqp_channel_t{0}, channel_inbox{}}};
  std::optional<std::string> broken_;
  std::optional<std::string> blocked_;
  std::uint64_t arrivals_ = 0;
  std::uint16_t channel_max_ = 0;
  server_facts server_;
  duration heartbeat_ = duration::zero();  // zero: none agreed on yet
  steady::time_point last_read_ = steady::now();
  steady::time_point last_write_ = steady::now();
  std::jthread thread_;
};

// A channel is used by one thread at a time. Its number is used again only if both sides know that it is
// closed.
class channel {
 public:
  channel(connection& on, const limit& within);  // opens it
  ~channel();
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;

  // Asks and waits for the answer. Throws refused if the server closes the channel instead.
  template <class Method>
  answer call(amqp_method_number_t which, Method what, const limit& within) {
    connection::lock held(on_.mutex_);
    require_open();
    on_.send(number_, which, &what);
    on_.flush();
    return on_.await_answer(held, number_, within);
  }
  // The same in two steps, for many at once. What was sent has to be awaited, by later calls if need be.
  template <class Method>
  void send(amqp_method_number_t which, Method what) {
    const connection::lock held(on_.mutex_);
    require_open();
    on_.send(number_, which, &what);
  }
  answer await_answer(const limit& within);
  void flush();

  // A message of a queue, if there is one.
  std::optional<arrived_message> get(const std::string& queue, const limit& within);

  // Puts a message on its way once there is room for it. False: it does not fit into the protocol's frames.
  bool publish(std::string_view exchange, std::string_view routing_key, amqp_basic_properties_t& properties,
               std::string_view body, const limit& within);

  // Tells the server, which takes back what was not acknowledged, and waits until it has.
  void close(const limit& within);

  // Why it has ended, if it has: the server has closed it, its queue has gone or the connection broke.
  std::optional<std::string> ended() const;
  std::optional<refusal> closed() const;

  // Waits until there is something new for a publisher: confirmations, returns, an alarm, an end.
  struct news {
    std::vector<confirmation> confirmations;
    std::vector<std::uint64_t> returned;
    std::optional<std::string> blocked;
    std::optional<refusal> closed;
  };
  news await_news(const limit& within);
  // Likewise without waiting.
  news take_news();

  // Up to so many of the messages that have come.
  std::vector<arrived_message> take(std::size_t messages_max);
  bool has_arrivals() const;
  std::vector<std::uint64_t> take_probes();  // tags
  std::vector<milestone> take_milestones();
  std::optional<std::uint64_t> first_arrived() const;  // the tag

 private:
  void require_open() const;
  channel_inbox& inbox() const { return on_.inboxes_.at(number_); }
  news take_news_now();

  connection& on_;
  amqp_channel_t number_;
  bool closed_by_both_ = false;
};

}  // namespace settle::inline v0::rabbitmq

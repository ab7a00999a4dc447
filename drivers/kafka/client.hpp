// The client library's objects with owners, and one client of it with what it is told.
#pragma once

#include <librdkafka/rdkafka.h>
#include <netinet/in.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "broker/limit.hpp"
#include "kafka/address.hpp"
#include "settle/error.hpp"
#include "settle/kafka.hpp"

namespace settle::inline v0::kafka {

template <auto Destroy>
struct destroyer {
  template <class T>
  void operator()(T* object) const {
    Destroy(object);
  }
};
using partition_list =
    std::unique_ptr<rd_kafka_topic_partition_list_t, destroyer<rd_kafka_topic_partition_list_destroy>>;
using queue_handle = std::unique_ptr<rd_kafka_queue_t, destroyer<rd_kafka_queue_destroy>>;
using event_handle = std::unique_ptr<rd_kafka_event_t, destroyer<rd_kafka_event_destroy>>;
using error_handle = std::unique_ptr<rd_kafka_error_t, destroyer<rd_kafka_error_destroy>>;
using message_handle = std::unique_ptr<rd_kafka_message_t, destroyer<rd_kafka_message_destroy>>;

inline partition_list make_list(std::size_t size = 1) {
  return partition_list(rd_kafka_topic_partition_list_new(static_cast<int>(size)));
}

inline rd_kafka_resp_err_t first_error(const rd_kafka_topic_partition_list_t& of) {
  for (int i = 0; i < of.cnt; ++i)
    if (of.elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) return of.elems[i].err;
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

// What the server, or the client in its place, has said to a question.
class refused : public error {
 public:
  refused(rd_kafka_resp_err_t code, const std::string& detail)
      : error(errc::destination_unavailable, detail), code_(code) {}
  rd_kafka_resp_err_t code() const { return code_; }

 private:
  rd_kafka_resp_err_t code_;
};

// Is told while somebody polls, on that thread. Must not throw.
class listener {
 public:
  virtual void reported(const rd_kafka_message_t& /*sent*/) {}
  virtual void rebalanced(rd_kafka_resp_err_t /*what*/, rd_kafka_topic_partition_list_t& /*of*/) {}

 protected:
  ~listener() = default;
};

class client {
 public:
  using settings = std::vector<std::pair<std::string, std::string>>;

  // Connects in the background. Throws invalid_argument for settings that the library refuses.
  client(const address& to, const options& with, rd_kafka_type_t type, const settings& more = {},
         listener* told = nullptr);
  ~client();  // without taking leave of a group
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  rd_kafka_t* get() const { return handle_; }

  // Ends it on a thread of its own: a consumer that could not be closed may take for ever, and must not keep
  // its caller. Nobody is told anything from here on.
  static void abandon(std::unique_ptr<client> of);

  // "Kafka k1:9092: <what>", and what the library has complained of last.
  std::string complaint(const std::string& what) const;

  // Repeats a question until it is answered. `question(ms)` gives an error code. Throws `refused`.
  template <class Question>
  void ask(const limit& within, const std::string& about, Question&& question) const {
    while (true) {
      const auto answer = question(static_cast<int>(within.at_most(slice).left().count()));
      if (answer == RD_KAFKA_RESP_ERR_NO_ERROR) return;
      judge(answer, within, about);
    }
  }

  // The next event of a queue. Throws `refused` at the limit.
  event_handle await(rd_kafka_queue_t& at, const limit& within, const std::string& about) const;

 private:
  static constexpr duration slice = std::chrono::milliseconds(250);  // so soon a stop is noticed

  void judge(rd_kafka_resp_err_t answer, const limit& within, const std::string& about) const;
  void note(int level, const char* said);
  static int connect_through(int socket, const sockaddr* to, int size, const char* id, void* self);

  std::string name_;
  environment env_;
  listener* told_;
  sockaddr_in through_{};
  mutable std::mutex mutex_;
  std::string last_said_;
  bool is_abandoned_ = false;
  rd_kafka_t* handle_ = nullptr;
};

}  // namespace settle::inline v0::kafka

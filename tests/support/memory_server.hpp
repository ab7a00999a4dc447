// What the brokers in memory have in common: a server that outlives its connections, as a broker's process
// outlives its clients. Its state lies in memory that is shared with forked children, so that a child that is
// killed leaves behind what it had published and acknowledged.
//
// Time for sessions is that of each connection's environment. Fault points have the names that the embedded
// broker gives them. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "settle/driver/broker.hpp"
#include "settle/environment.hpp"
#include "settle/error.hpp"
#include "support/shared_memory.hpp"

namespace settle::test {

// What becomes of acknowledgements that are lost.
enum class acknowledgement_loss {
  unnoticed,    // the server drops it and the member believes that it was done
  refused,      // the server drops it and the member gets an error
  answer_lost,  // the server does it and the member gets an error
};

struct stored_message {
  explicit stored_message(const message& from, timestamp at);
  message content() const;

  shared_text packed;
  timestamp stored_at;
};

class memory_server {
 public:
  virtual ~memory_server() = default;

  // `env` and this server outlive the connection. Topics that are used for the first time get this many
  // partitions, if the server has such a thing.
  std::unique_ptr<broker> open(const environment& env, int partitions = 4);
  virtual broker_traits traits() const = 0;

  // From now on, until told otherwise.
  void be_away(bool away = true) { common_->away = away; }        // every call fails at once
  void hang(bool hanging = true) { common_->hanging = hanging; }  // every call waits until its limits end it

  // The next `calls` calls to acknowledge() that have something to say.
  void lose_acknowledgements(int calls, acknowledgement_loss how);

  // As if the broker were restored from a copy: sessions of the group end, and everything that it ever
  // acknowledged comes again.
  virtual void forget_acknowledgements(const std::string& group) = 0;

  // How often each message id was published.
  std::map<std::string, int> stored() const;

 protected:
  friend class memory_connection;

  struct common_state {
    process_mutex mutex;  // of everything, also in the servers
    std::atomic<bool> away = false;
    std::atomic<bool> hanging = false;
    std::atomic<std::uint64_t> changes = 0;
    int losses = 0;
    acknowledgement_loss loss = acknowledgement_loss::unnoticed;
    shared_map<shared_text, int> published;  // how often, by id
  };

  // Throws destination_unavailable, or cancelled, unless the server can be reached.
  void reach(const environment& env, const call_limits& limits) const;
  std::vector<publish_result> publish(std::span<const message> batch, const call_limits& limits,
                                      const environment& env, int partitions);
  // Runs `apply` between the fault points of acknowledgements, unless it is one to be lost.
  template <class Apply>
  void acknowledge(const environment& env, const Apply& apply);

  virtual void store(const message& what, timestamp now, int partitions) = 0;  // under the mutex
  virtual std::unique_ptr<subscription> subscribe(const environment& env, const subscribe_options& options,
                                                  int partitions) = 0;
  virtual std::unique_ptr<backlog> backlog_of(const environment& env, const std::string& group,
                                              const std::vector<std::string>& topics) = 0;
  void changed() { ++common_->changes; }

  shared_ptr_of<common_state> common_ = make_in_shared_memory<common_state>();

 private:
  // The loss that applies to this call, if any.
  bool takes_loss(acknowledgement_loss& how);
};

template <class Apply>
void memory_server::acknowledge(const environment& env, const Apply& apply) {
  auto how = acknowledgement_loss::answer_lost;
  const bool lost = takes_loss(how);
  if (!lost || how == acknowledgement_loss::answer_lost)
    with_fault_points(env, "broker.acknowledge", [&] {
      const std::scoped_lock lock(common_->mutex);
      apply();
    });
  if (lost && how != acknowledgement_loss::unnoticed)
    throw error::with_unknown_outcome(errc::destination_unavailable,
                                      "the answer to an acknowledgement is lost");
}

// Wakes up when the server's state changes, also by another process.
class memory_arrivals final : public wakeup {
 public:
  explicit memory_arrivals(const std::atomic<std::uint64_t>& changes) : changes_(changes) {}
  void wait(duration at_most, std::stop_token stop) override;

 private:
  const std::atomic<std::uint64_t>& changes_;
  std::uint64_t seen_ = 0;
};

}  // namespace settle::test

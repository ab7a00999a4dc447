// Staged jobs: background work that begins if, and only if, the transaction that asked for it commits.
//
//   auto tx = db->begin();
//   tx.execute("insert into users (id, mail) values ($1, $2)", {id, mail});
//   settle::stage_job(tx, {.name = "welcome", .payload = mail});
//   tx.commit();
//
//   settle::job_runner runner(*db, *broker, {});
//   runner.on("welcome", [](const settle::job& what, settle::transaction& tx) { … });
//   settle::background loop(runner);
//
// A job is an event of the outbox: a relay brings it to the topic "jobs.<queue>" of the broker, and the
// runners of that queue, in any number of processes, share them. What a handler writes in its transaction
// happens exactly once. Effects outside of it (a mail, a call) may repeat after a crash; use the job's id to
// make them idempotent. A handler that throws is rolled back and tried again with growing pauses, and what
// keeps failing becomes a dead letter, as with any consumer. A job whose name has no handler waits for one
// for consuming.transient_max_age, so that a runner that is older than its producers loses nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "settle/consume.hpp"
#include "settle/publish.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

struct job {
  std::string name;               // says which handler; 1–255 bytes
  std::string payload = {};       // opaque bytes; at most 1 MiB
  std::string queue = "default";  // 1–250 bytes
  std::string key = {};           // jobs of one key run one after the other. Empty: in any order
  std::string content_type = "application/json";
  std::string id = {};  // set for handlers
};

struct job_options {
  // Not before. Empty: at once.
  std::optional<timestamp> run_at = std::nullopt;
  // The job's id, to repeat a staging whose outcome is unknown. Empty: a new one.
  std::optional<event_id> id = std::nullopt;
};

// Errors as publish(): before the transaction is touched.
event_id stage_job(transaction& tx, const job& what, const job_options& options = {});

struct job_runner_options {
  std::string queue = "default";
  // Everything else is the consumer's; its name and topics are set from the queue.
  consumer_options consuming = {};
};

class job_runner final : public service {
 public:
  using handler = std::function<void(const job&, transaction&)>;

  job_runner(database& db, broker& from, const job_runner_options& options = {});
  ~job_runner() override;

  job_runner& on(std::string_view name, handler what);

  // One batch of jobs. False when nothing could be done now.
  bool run_once(std::stop_token cancel = {}) override;

  consumer_counts counts() const { return consumer_.counts(); }

  std::string_view name() const override { return consumer_.name(); }
  const environment& env() const override { return consumer_.env(); }
  wakeup& arrivals() override { return consumer_.arrivals(); }
  duration idle_wait() const override { return consumer_.idle_wait(); }
  void leave() noexcept override { consumer_.leave(); }
  void abandon() noexcept override { consumer_.abandon(); }

 private:
  std::string topic_;
  consumer consumer_;
};

}  // namespace settle::inline v0

#pragma GCC visibility pop

// One actor of an isolation spec: a thread with a connection of its own, and the steps that it takes in
// order.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct pg_conn;

namespace settle::isolation {

struct step {
  std::string what;
  std::function<void()> run;
  bool may_fail = false;
};

class session {
 public:
  // The name is also the application_name of its connection. Whatever else works for this session (the
  // database object of a relay) has to connect under that name too: it is how the runner sees a wait.
  session(std::string name, const std::string& conninfo);
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  // Adds a step: statements on the session's own connection, or anything else.
  session& sql(const std::string& statements);
  session& call(std::string what, std::function<void()> action);

  // For the last step added: how it is shown, and that an error is one of its outcomes.
  session& called(std::string what);
  session& may_fail();

  // Inside an action: the step ends here. The session's next step goes on from here, and does not start an
  // action of its own.
  void pause();

  const std::string& name() const { return name_; }

 private:
  friend class runner;
  enum class state { idle, running, paused };

  void work(const std::stop_token& stop);
  void execute(const std::string& statements);
  void start(const std::function<void()>& action);
  bool stands_within(std::chrono::milliseconds wait);  // idle or paused
  bool running();
  void resume_for_good();  // pauses no more
  void pause_again();
  bool in_transaction() const;
  std::string take_error();

  const std::string name_;
  std::unique_ptr<pg_conn, void (*)(pg_conn*)> conn_;
  std::vector<step> steps_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  state state_ = state::idle;
  bool pausing_ = false;
  std::function<void()> task_;
  std::string error_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace settle::isolation

// A saga's body in memory, told what the journal knows and allowed to do what comes next.
#pragma once

#include <coroutine>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "saga/instance.hpp"
#include "settle/saga_flow.hpp"

namespace settle::sagas {

class body_run final : public detail::body_host {
 public:
  explicit body_run(instance& of) : of_(of) {}

  // As far as it gets. Afterwards it waits for something, has ended, or is not needed any more: its saga is
  // undone or held, or has to try again later.
  void advance(tick_work& in);

  bool is_over() const { return over_; }  // not to be resumed any more
  std::optional<timestamp> next_timer() const;
  // What waits for the answer of a row.
  const detail::question* asked_by(int row) const;

  bool ask(detail::flow_scope& in, detail::question& what) override;
  void wait(detail::flow_scope& in, detail::question& what, std::coroutine_handle<> who) override;
  void begin(std::coroutine_handle<> branch) override { ready_.push_back(branch); }
  void resume(std::coroutine_handle<> parent) override { ready_.push_back(parent); }
  detail::flow_scope& scope(std::string path) override;
  saga_id id() const override { return of_.row.id; }
  const std::string& entity() const override { return of_.row.entity; }

 private:
  struct waiting {
    detail::flow_scope* scope;
    detail::question* what;
    std::coroutine_handle<> who;
  };

  bool answer(detail::flow_scope& in, detail::question& what);
  bool open(detail::flow_scope& in, detail::question& what);
  bool find_opened(detail::flow_scope& in, detail::question& what, const journal_row& next);
  bool open_new(detail::flow_scope& in, detail::question& what);
  bool open_step(detail::flow_scope& in, detail::question& what);
  bool open_child(detail::flow_scope& in, detail::question& what);
  bool do_local(detail::flow_scope& in, detail::question& what);
  void opened(detail::flow_scope& in, detail::question& what, journal_row row);
  bool may_see(const journal_row& row);
  bool deliver(detail::flow_scope& in, detail::question& what);
  bool deliver_answer(detail::question& what, const journal_row& answer);
  bool version(detail::flow_scope& in, detail::question& what);
  void diverged(const std::string& why);
  void resume_ready();
  void finish();
  void stop() { over_ = true; }

  instance& of_;
  tick_work* tick_ = nullptr;
  std::map<std::string, detail::flow_scope> scopes_;
  std::unique_ptr<detail::running_body> body_;  // destroyed before the scopes
  std::deque<std::coroutine_handle<>> ready_;
  std::vector<waiting> waiting_;
  bool over_ = false;
};

}  // namespace settle::sagas

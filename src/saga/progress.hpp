// One saga in one tick: what operators ask, what calls have answered, the body, the undo. Pure but for the
// steps that the tick performs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "saga/calls.hpp"
#include "saga/instance.hpp"

namespace settle::sagas {

class progress {
 public:
  progress(instance& of, tick_work& in) : of_(of), in_(in) {}

  // `answers` are those of this saga's calls under its present epoch.
  void run(std::span<const call_answer> answers);

  // An order that could not be done; empty if there was none.
  const std::string& order_refused() const { return order_refused_; }

 private:
  void obey();
  void obey_parent(const std::string& why);
  bool mark_done(int n, const std::string& result);
  void note_lost_calls();
  void keep_deadline();
  void run_body();

  void take(const call_answer& answer);
  void take_no_reply(int n);
  void take_performed(const call_answer& answer, open_call& call);
  void note_for_undo(const call_answer& answer);
  void take_undone(const call_answer& answer, open_call& call);
  void outcome_unknown(int n, open_call& call, const std::string& why, duration at_least = {});
  void give_up(int n, open_call& call, const std::string& why, bool certain = false);
  void repeat_later(int n, bool undo, open_call& call, const std::string& why, duration at_least = {});
  void send_due();

  void undo();
  bool undo_local(int n, const detail::step_core& step);
  void undo_remote(int n);
  bool undo_child(int n);
  void end_undo();

  instance& of_;
  tick_work& in_;
  std::string order_refused_;
  bool is_too_late_ = false;  // its deadline has passed
};

}  // namespace settle::sagas

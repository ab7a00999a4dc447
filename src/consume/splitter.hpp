// What to try next when a batch could not commit whole: which of its messages share the next transaction, so
// that one bad message costs the others little, none overtakes an earlier one of its key, and only a message
// that fails alone has failed. Decisions only; the host makes the attempts.
#pragma once

#include <optional>
#include <vector>

#include "consume/plan.hpp"

namespace settle::consume {

class attempt_host {
 public:
  virtual ~attempt_host() = default;

  // One transaction for all of these. Nothing: it has committed. Else why not, or what did not commit with
  // it.
  virtual std::optional<failure> attempt(batch messages) = 0;

  virtual bool may_try() const = 0;                 // false: something is away, and it is not time yet
  virtual bool is_done(const work& one) const = 0;  // what became of it has committed
  virtual void failed_alone(work& one, const failed_attempt& how) = 0;
  virtual void keys_held_elsewhere() = 0;  // by another process, so their messages are put off
};

class splitter {
 public:
  explicit splitter(attempt_host& host) : host_(host) {}

  // Applies a batch, in one transaction if that goes well.
  void apply(batch messages) { apply(messages, 0); }

 private:
  // `left_out`: how many messages were tried apart from the others so far.
  void apply(batch messages, int left_out);
  void apply_split(batch messages, const failure& why, int left_out);
  void apply_left_out(batch messages, const failure& why, int left_out);
  std::vector<work*> not_behind(batch messages, batch part) const;

  attempt_host& host_;
};

}  // namespace settle::consume

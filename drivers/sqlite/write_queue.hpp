// Writers wait their turn here instead of polling SQLite's lock: first come, first served within the
// process, then a lock file between processes. It is for queueing only. Safety comes from SQLite's own
// lock, so a program that does not know this queue is merely impolite.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "settle/environment.hpp"

namespace settle::inline v0::sqlite {

class write_queue {
 public:
  // An empty path: a queue within this process only, for files that no other process can see.
  explicit write_queue(const std::string& lock_path);
  ~write_queue();
  write_queue(const write_queue&) = delete;
  write_queue& operator=(const write_queue&) = delete;

  struct state;

  // Held from acquire() until destroyed or released.
  class turn {
   public:
    turn() = default;
    explicit turn(std::shared_ptr<state> of) : of_(std::move(of)) {}
    turn(turn&&) noexcept = default;
    turn& operator=(turn&& other) noexcept {
      release();
      of_ = std::move(other.of_);
      return *this;
    }
    ~turn() { release(); }
    void release() noexcept;

    // Touches the lock file, so that whoever watches it knows that a commit is visible now.
    void announce() const noexcept;

   private:
    std::shared_ptr<state> of_;
  };

  // Throws store_busy after `at_most`, or cancelled.
  turn acquire(duration at_most, const std::stop_token& cancel);

 private:
  std::shared_ptr<state> state_;
};

}  // namespace settle::inline v0::sqlite

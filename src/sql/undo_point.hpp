// A place in somebody else's transaction to go back to. Sent with the next statement, so it costs no round
// trip.
#pragma once

#include "settle/database.hpp"

namespace settle::sql {

// Points that are left in the reverse order of their making may nest. One that is left by neither leave() nor
// undo(), because an exception passes, goes back: whoever catches that and commits has nothing half done.
class undo_point {
 public:
  explicit undo_point(transaction& tx) : tx_(tx) { tx_.post(set); }
  ~undo_point() {
    if (left_) return;
    try {
      undo();
    } catch (...) {  // the transaction is lost; what passes says why
    }
  }
  undo_point(const undo_point&) = delete;
  undo_point& operator=(const undo_point&) = delete;

  // Everything since it was made; it stays for what comes next.
  void go_back() { tx_.execute(back); }
  void undo() {
    left_ = true;
    go_back();
    tx_.post(release);
  }
  void leave() {
    left_ = true;
    tx_.post(release);
  }

 private:
  static constexpr query set{"undo_point.set", "savepoint settle_undo", "savepoint settle_undo"};
  static constexpr query back{"undo_point.go_back", "rollback to savepoint settle_undo",
                              "rollback to savepoint settle_undo"};
  static constexpr query release{"undo_point.release", "release savepoint settle_undo",
                                 "release savepoint settle_undo"};
  transaction& tx_;
  bool left_ = false;
};

// Does the work whole or not at all. Row locks belong to it too: PostgreSQL is slower with rows that are
// locked outside of a savepoint and changed inside.
template <class Work>
auto whole(transaction& tx, Work&& work) {
  undo_point before(tx);
  auto done = work();
  before.leave();
  return done;
}

}  // namespace settle::sql

// Which savepoints the present part of a transaction has set. Who rolls back to one of an earlier part undoes
// that part's work and keeps its claim, so that is refused.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace settle::sql {

struct savepoint_step {
  enum class kind { set, release, roll_back };
  kind what;
  std::string name;  // as the database compares it; empty if it cannot be told
};

class savepoints {
 public:
  // Throws transaction_control for the savepoint of another part. Without parts the database judges alone.
  void apply(const savepoint_step& step);
  // Whether what was applied since the last word has happened. One that was never set must not count: its
  // name may be that of an earlier part's.
  void confirm() noexcept { confirmed_ = open_.size(); }
  void forget_unconfirmed() { open_.resize(confirmed_); }
  void end_part();
  void clear() noexcept;

 private:
  std::vector<std::string> open_;  // of this part, the last one on top
  std::size_t confirmed_ = 0;      // of them
  bool parted_ = false;
};

}  // namespace settle::sql

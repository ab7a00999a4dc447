#include "sql/savepoints.hpp"

#include <algorithm>

#include "settle/error.hpp"

namespace settle::sql {

void savepoints::apply(const savepoint_step& step) {
  if (step.what == savepoint_step::kind::set) return open_.push_back(step.name);
  const auto newest = std::find(open_.rbegin(), open_.rend(), step.name);
  const bool known = newest != open_.rend() && !step.name.empty();
  if (!known && parted_)
    throw error(errc::transaction_control,
                "'" + step.name + "' is no savepoint of this handler; those of others are out of its reach");
  if (!known) return;
  const bool keep = step.what == savepoint_step::kind::roll_back;
  open_.erase(newest.base() - (keep ? 0 : 1), open_.end());
  confirmed_ = std::min(confirmed_, open_.size());
}

void savepoints::end_part() {
  open_.clear();
  confirmed_ = 0;
  parted_ = true;
}

void savepoints::clear() noexcept {
  open_.clear();
  confirmed_ = 0;
  parted_ = false;
}

}  // namespace settle::sql

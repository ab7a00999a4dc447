#include "inspect/dead_letters.hpp"

#include "dead_letter/find.hpp"

namespace settle::inspect {
namespace {

letters_plan plan(database& db, const dlq::search& wanted, std::size_t first_max) {
  letters_plan made;
  std::vector<std::int64_t> ids;
  {
    auto tx = db.read();
    made.matching = wanted.measure(tx).count;
    made.left_out = wanted.count_spared(tx);
    if (first_max > 0) ids = wanted.find(tx, {}, first_max);
  }
  if (!ids.empty()) made.first = dead_letters(db, {.ids = ids});
  return made;
}

}  // namespace

letters_plan plan_replay(database& db, const dead_letter_filter& which, duration asked_ago,
                         std::size_t first_max) {
  const auto status = which.status.value_or(dead_letter_status::fresh);
  const auto asked_until =
      status == dead_letter_status::fresh ? timestamp::max() : db.env().now() - asked_ago;
  return plan(db, dlq::search::to_replay(which, status, asked_until), first_max);
}

letters_plan plan_discard(database& db, const dead_letter_filter& which, std::size_t first_max) {
  return plan(db, dlq::search(which, which.status.value_or(dead_letter_status::fresh)), first_max);
}

}  // namespace settle::inspect

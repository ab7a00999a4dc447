#include "consume/letters.hpp"

namespace settle::consume {

dead_letter letter_of(const work& of, dead_letter_reason why, const giving_up& by) {
  dead_letter made;
  made.consumer = by.options.name;
  made.consumer_version = by.options.version;
  made.reason = why;
  made.failed_at = by.now;
  if (of.parked) made.history = of.parked->history;
  if (of.charge) made.history.push_back(*of.charge);
  made.attempts = (of.parked ? of.parked->attempts : 0) + (of.charge ? 1 : 0);
  if (!made.history.empty()) made.error = made.history.back().error;
  made.blocks_key = by.options.on_exhausted == on_exhausted::block_key && !of.what().key.empty();
  made.what = of.what();
  made.log = by.log;
  made.position = of.parked ? of.parked->position : of.content.at.text();
  return made;
}

dead_letter letter_beyond_horizon(const work& of, const giving_up& by) {
  auto letter = letter_of(of, dead_letter_reason::beyond_dedup_horizon, by);
  letter.error =
      "it may have been applied long ago: it is a copy of a message whose record has expired. Replay it only "
      "if it has not";
  letter.blocks_key = false;
  return letter;
}

}  // namespace settle::consume

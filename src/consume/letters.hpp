// The dead letter of a message that is given up. Pure.
#pragma once

#include <string_view>

#include "consume/work.hpp"
#include "settle/consume.hpp"
#include "settle/dead_letter.hpp"

namespace settle::consume {

// Who gives it up, when, and the partition that the message was delivered from.
struct giving_up {
  const consumer_options& options;
  timestamp now;
  std::string_view log;
};

dead_letter letter_of(const work& of, dead_letter_reason why, const giving_up& by);

// Of a message that is a copy of one whose record has expired: nobody has tried it, and nobody waits for it.
dead_letter letter_beyond_horizon(const work& of, const giving_up& by);

}  // namespace settle::consume

// What follows from a failure that is a message's own. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "settle/consume.hpp"
#include "settle/dead_letter.hpp"

namespace settle::consume {

struct judgement {
  std::optional<dead_letter_reason> give_up;  // none: it is tried again
  duration wait{};                            // before that, without jitter
};

// `attempts` counts the failure that is judged; `first` is when the message failed first.
judgement judge(const consumer_options& options, failure_class why, std::int64_t attempts, timestamp first,
                timestamp now);

}  // namespace settle::consume

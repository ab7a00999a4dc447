// What follows from a failure that is a message's own. Pure.
#pragma once

#include <cstdint>

#include "consume/work.hpp"
#include "settle/consume.hpp"

namespace settle::consume {

// `attempts` counts the failure that is judged; `first` is when the message failed first.
judgement judge(const consumer_options& options, failure_class why, std::int64_t attempts, timestamp first,
                timestamp now);

}  // namespace settle::consume

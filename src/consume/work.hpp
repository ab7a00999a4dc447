// A message on its way through a consumer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retry/judge.hpp"
#include "retry/outage.hpp"
#include "settle/dead_letter.hpp"
#include "settle/driver/broker.hpp"

namespace settle::consume {

// Where a message waits after a failure.
struct parked_place {
  std::int64_t id = 0;
  std::string single;  // its own deduplication key, if it has no key
  std::int64_t attempts = 0;
  std::int64_t starts = 0;  // begun and not ended: so many processes have died over it
  std::vector<failed_attempt> history;
  std::string log;       // the partition that it came from,
  std::string position;  // and where it stood there, for people
  std::optional<timestamp> first_failed_at;
  std::int64_t charged = 0;  // of the attempts, those for reasons that were not expected to pass

  retry::tally failures() const { return {attempts, charged, starts}; }
};

struct work {
  delivery content;
  std::optional<parked_place> parked;      // none: it came from the broker
  std::optional<failed_attempt> charge;    // it has failed alone, and the next transaction writes that down
  std::optional<retry::judgement> judged;  // what follows from the charge
  bool unfit = false;                      // its text had to be changed to be stored at all
  bool noted = false;                      // a replay: its letter knows that it begins here
  timestamp not_before{};                  // another process had its key when it was to run
  retry::met_outages outages;              // it has failed through no fault of its own

  const message& what() const { return content.content; }
  bool given_up() const { return judged && judged->give_up; }
};

// Topic and key.
using key_view = std::pair<std::string_view, std::string_view>;

// Whether the two must keep their order.
bool same_key(const message& a, const message& b);

}  // namespace settle::consume

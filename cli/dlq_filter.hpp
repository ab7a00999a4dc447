// Which dead letters a command means: the options that list, replay and discard share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/syntax.hpp"
#include "settle/dead_letter.hpp"

namespace settle::cli {

struct letter_options {
  std::vector<std::int64_t> ids;
  std::string consumer, topic, type, key, event, reason, since, until;
  std::string status = "NEW";

  // True if nothing but the status narrows it down.
  bool empty() const;

  // Throws a failure for what is no reason, no status or no time.
  dead_letter_filter filter(timestamp now) const;
};

// `reason_name`: the option that chooses by why they were given up.
void add_letter_options(command_syntax to, letter_options& into, const char* status_help,
                        const char* reason_name = "--reason");

// For those who change letters: throws a failure unless letters are named, chosen by options, or all wanted.
void require_scope(const letter_options& which, bool all);
// As filter(); throws a failure for another status than NEW or REPLAYING.
dead_letter_filter undecided_filter(const letter_options& which, timestamp now);
// Throws a failure if some of the ids name no letter that matches: mistyped ones are told before anything is
// changed.
void require_found(const dead_letter_filter& which, std::int64_t matching);

// A time (2026-01-31T12:00:00Z), a day (2026-01-31), or how long ago (90s, 15m, 2h, 3d). Throws a failure.
timestamp time_from(std::string_view option, std::string_view text, timestamp now);

}  // namespace settle::cli

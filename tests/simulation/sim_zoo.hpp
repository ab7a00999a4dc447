// The bugs that the simulation must find, by name. Programs without the zoo have none.
#pragma once

#include <string>
#include <string_view>

#include "base/zoo.hpp"

namespace settle::sim {

struct named_bug {
  std::string_view name;
  zoo::bug which;
};

inline constexpr named_bug findable_bugs[] = {
    {"none", zoo::bug::none},
    {"ack_before_commit", zoo::bug::ack_before_commit},
    {"claim_kept_after_failed_handler", zoo::bug::claim_kept_after_failed_handler},
    {"cursor_on_reusable_rowid", zoo::bug::cursor_on_reusable_rowid},
    {"publish_before_durable", zoo::bug::publish_before_durable},
    {"ack_lost_twice", zoo::bug::ack_lost_twice},
    {"retention_by_wrong_clock", zoo::bug::retention_by_wrong_clock},
    {"claim_outside_rolled_back_part", zoo::bug::claim_outside_rolled_back_part},
    {"failed_part_kept", zoo::bug::failed_part_kept},
    {"charge_for_an_outage", zoo::bug::charge_for_an_outage},
    {"replay_to_all_groups", zoo::bug::replay_to_all_groups},
    {"expiry_before_replay", zoo::bug::expiry_before_replay},
    {"overtaking_a_parked_key", zoo::bug::overtaking_a_parked_key},
    {"charge_kept_when_left_out", zoo::bug::charge_kept_when_left_out},
    {"undo_skips_the_unknown", zoo::bug::undo_skips_the_unknown},
    {"frames_kept_after_failure", zoo::bug::frames_kept_after_failure},
    {"deadline_recomputed", zoo::bug::deadline_recomputed},
    {"wake_up_overwritten", zoo::bug::wake_up_overwritten},
};

#ifdef SETTLE_ZOO
inline bool set_bug(std::string_view name) {
  for (const auto& one : findable_bugs)
    if (one.name == name) {
      zoo::present = one.which;
      return true;
    }
  return false;
}
inline std::string bugs_here() {
  std::string all = "there are:";
  for (const auto& one : findable_bugs) all.append(" ").append(one.name);
  return all;
}
#else
inline bool set_bug(std::string_view) { return false; }
inline std::string bugs_here() { return "use simulate_zoo"; }
#endif

}  // namespace settle::sim

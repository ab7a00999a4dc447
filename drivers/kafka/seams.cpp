#include "kafka/seams.hpp"

#include "base/zoo.hpp"

namespace settle::inline v0::kafka {
namespace {

void commit(membership& by, const place& at, std::int64_t next, const std::string& mark) {
  by.commit({{at, next, mark}}, limit::within(std::chrono::seconds(5)));
}

}  // namespace

client::settings habits_of_the_library() {
  if (!zoo::has(zoo::bug::auto_commit_left_on)) return {};
  return {{"enable.auto.commit", "true"},
          {"enable.auto.offset.store", "true"},
          {"auto.commit.interval.ms", "100"}};
}

std::int64_t first_offset(const extent& of) { return zoo::has(zoo::bug::reset_to_latest) ? of.high : of.low; }

void was_handed_out(membership& by, const place& from, std::int64_t offset, const std::string& mark) {
  if (zoo::has(zoo::bug::offset_before_effects)) commit(by, from, offset + 1, mark);
}

void acknowledged_too_late(membership& by, const place& from, std::int64_t offset) {
  if (zoo::has(zoo::bug::commit_of_a_revoked_partition)) commit(by, from, offset + 1, {});
}

}  // namespace settle::inline v0::kafka

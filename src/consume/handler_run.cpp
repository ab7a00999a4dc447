#include "consume/handler_run.hpp"

#include <utility>

namespace settle::consume {
namespace {

std::optional<failure> run_in_order(batch messages, plan& of, handler_host& on, const judging& by) {
  for (std::size_t i = 0, next = 0; i < messages.size(); i = next) {
    next = i + 1;
    if (of.what[i] != verdict::run && of.what[i] != verdict::replay) continue;
    const auto count = on.together(i);
    next = i + count;
    auto how = on.run(i, count);
    if (!how) continue;
    if (count > 1) return failure{std::nullopt, std::move(*how)};
    if (of.what[i] == verdict::replay || !on.charge_at_once(i, *how)) return failure{i, std::move(*how)};
    of.charge(messages, i, by);
  }
  return std::nullopt;
}

// With the later ones of its key. False: the batch has to be rolled back.
bool leave_out(batch messages, const failure& why, plan& of, handler_host& on) {
  if (!why.at || of.what[*why.at] != verdict::run || why.how.why == failure_class::outage) return false;
  of.leave_out(messages, *why.at);
  return of.has_to_run() && of.failed.size() <= left_out_max && on.go_back();
}

}  // namespace

std::optional<failure> run_handlers(batch messages, plan& of, handler_host& on, const judging& by) {
  auto why = run_in_order(messages, of, on, by);
  while (why && leave_out(messages, *why, of, on)) why = run_in_order(messages, of, on, by);
  if (why) why->several = of.failed.size() >= left_out_max;
  return why;
}

}  // namespace settle::consume

#include "daemon/services/sweeping.hpp"

#include "once/forgetting.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "settle/webhook.hpp"

namespace settle::daemon {

bool sweeping::run_once(std::stop_token cancel) {
  if (cancel.stop_requested()) throw error(errc::cancelled, "the sweep was cancelled");
  removed slice;
  const auto keys = keys::forget_slice(db_, options_.slice_max);
  slice.requests = keys.gone;
  note({.requests = slice.requests});
  slice.webhooks = webhook::expire(db_, options_.webhook_keep, options_.slice_max);
  note({.webhooks = slice.webhooks});
  in_sweep_ =
      keys.put_off > 0 || slice.requests >= options_.slice_max || slice.webhooks >= options_.slice_max;
  if (in_sweep_) return false;
  if (so_far_.requests + so_far_.webhooks > 0)
    env().log->write(
        log_level::info, "swept",
        {{"requests", std::to_string(so_far_.requests)}, {"webhooks", std::to_string(so_far_.webhooks)}});
  so_far_ = {};
  return false;
}

void sweeping::note(const removed& slice) {
  so_far_.requests += slice.requests;
  so_far_.webhooks += slice.webhooks;
  if (slice.requests > 0) env().counters->add("settle_swept_total", {{"what", "requests"}}, slice.requests);
  if (slice.webhooks > 0) env().counters->add("settle_swept_total", {{"what", "webhooks"}}, slice.webhooks);
}

}  // namespace settle::daemon

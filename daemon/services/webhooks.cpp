#include "daemon/services/webhooks.hpp"

namespace settle::daemon {
namespace {

// What comes here wakes the worker; this is for what another process has journaled, and for retries.
constexpr duration idle_poll = std::chrono::seconds(1);

http::response unavailable() {
  http::response made{.status = 503};
  made.headers.set("Retry-After", "1");
  return made;
}

// The sender learns the status and nothing else; the log has the reason.
http::response take(const webhook::inbox& by, database* in, const http::request& asked) {
  if (in == nullptr) return unavailable();
  webhook::request what{.body = asked.body};
  for (const auto& [name, value] : asked.headers) what.headers.push_back({name, value});
  const auto decided = by.receive(*in, what);
  return decided.status == 503 ? unavailable() : http::response{.status = decided.status};
}

}  // namespace

webhooks::webhooks(std::span<const config::webhook_settings> sources) {
  entrances_.reserve(sources.size());
  for (const auto& one : sources) entrances_.push_back({webhook::inbox(one.source), one.topic});
}

void webhooks::add_routes(http::router& to, const route_place& at, const store& in) const {
  for (const auto& one : entrances_) {
    const auto& by = one.inbox;
    to.post(at.prefix + "/webhooks/" + by.of().name,
            [&by, in](const http::request& asked) { return take(by, in(), asked); },
            {.body_bytes_max = by.of().body_bytes_max, .workers = at.workers});
  }
  to.post(at.prefix + "/webhooks/{source}",
          [](const http::request& asked) {
            return http::problem(404, "webhook_source_unknown",
                                 "the configuration has no table [webhook.NAME] of this name", asked.path);
          },
          {.quick = true});
}

std::unique_ptr<service> webhooks::make_worker(database& db) const {
  auto made = std::make_unique<webhook::worker>(
      db, webhook::worker_options{.keep = duration::zero(), .idle_poll = idle_poll});
  for (const auto& one : entrances_) made->on(one.inbox.of().name, "", webhook::forward_to(one.topic));
  return made;
}

}  // namespace settle::daemon

#include "saga/events.hpp"

#include <utility>
#include <vector>

#include "settle/metrics.hpp"

namespace settle::sagas {

event_intake::event_intake(database& db, broker& from, const std::string& host)
    : mail_(host), consumer_(db, from, {.name = host + ".sagas"}) {}

void event_intake::on(std::string_view topic, std::string_view type, key_reader key_of) {
  listens_ = true;
  consumer_.on_batch(
      topic, type, [this, key_of = std::move(key_of)](std::span<const message* const> all, transaction& tx) {
        std::vector<arrived_event> events;
        events.reserve(all.size());
        for (const auto* m : all) events.push_back({m->type, key_of(m->payload), m->id, m->payload});
        mail_.deliver(tx, events);
      });
}

bool event_intake::run_once(std::stop_token cancel) {
  const auto began = env().now();
  const bool more = consumer_.run_once(std::move(cancel));
  if (!more) empty_at_us_ = began.time_since_epoch().count();
  return more;
}

}  // namespace settle::sagas

#include "queries/outbox.hpp"
#include "settle/environment.hpp"
#include "settle/outbox.hpp"

namespace settle::inline v0 {

std::vector<failed_event> failed_events(database& db, std::size_t at_most) {
  namespace columns = queries::outbox::read_failed_columns;
  const auto rows = db.read().execute(queries::outbox::read_failed, {static_cast<std::int64_t>(at_most)});
  std::vector<failed_event> found;
  for (std::size_t i = 0; i < rows.size(); ++i)
    found.push_back({event_id::parse(rows[i][columns::event_id].text()).value(),
                     rows[i][columns::topic].text(), rows[i][columns::event_type].text(),
                     rows[i][columns::aggregate_id].text(), rows[i][columns::attempts].integer(),
                     rows[i][columns::last_error].text(), rows[i][columns::created_at].time(),
                     rows[i][columns::next_at].time()});
  return found;
}

std::int64_t requeue_failed(database& db, std::optional<event_id> only) {
  auto tx = db.begin();
  const auto count =
      tx.execute(queries::outbox::requeue_failed, {db.env().now(), only ? value(only->text()) : value()})
          .affected();
  tx.wake_on_commit();
  tx.commit("outbox.requeue");
  return count;
}

}  // namespace settle::inline v0

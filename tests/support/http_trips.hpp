// Trips whose steps are HTTP requests to a participant, which keeps its books in a database.
#pragma once

#include <string>

#include "settle/http_server.hpp"
#include "settle/http_step.hpp"
#include "support/saga_world.hpp"

namespace settle::test {

// Where the participant is now. It may be another place after a restart, so a step looks it up.
inline std::string participant_at;

inline http::client_request trip_request(const std::string& step, const trip& t) {
  return {.method = "POST", .url = participant_at + "/" + step, .body = codec<trip>::encode(t)};
}

inline auto http_booking(const std::string& name, const http::client& by) {
  return http_post<trip, std::string>(name, by, [name](const trip&) { return participant_at + "/" + name; })
      .undo(http_undo(by, [name](const trip& t) { return trip_request(name, t); }));
}

inline http::response book(const std::string& name, const http::request& asked, const saga_call& call,
                           transaction& tx) {
  const auto t = codec<trip>::decode(asked.body);
  if (call.op == saga_op::undo) {
    note(tx, t.id, "undo " + name);
    return http::text(200, "text/plain", "undone");
  }
  note(tx, t.id, name);  // is gone if it refuses
  if (t.has(name + ":refuse")) return http::problem(422, "no_room", "no " + name + " for " + t.id);
  if (t.has(name + ":fail")) return http::problem(500, "failed", name + " fails");
  return http::text(201, "text/plain", name + " of " + t.id);
}

// The participant of three steps.
class trip_participant {
 public:
  trip_participant(database& books, log_sink& log, metrics& counters)
      : server_(routes(books), {.worker_threads = 4, .env = {.log = &log, .counters = &counters}}) {
    participant_at = "http://127.0.0.1:" + std::to_string(server_.port());
  }

 private:
  static http::router routes(database& books) {
    http::router made;
    for (const std::string name : {"flight", "hotel", "car"})
      made.post("/" + name, http::participant(books, [name](const auto& asked, const auto& call, auto& tx) {
                  return book(name, asked, call, tx);
                }));
    return made;
  }
  http::server server_;
};

}  // namespace settle::test

// Giving a message up: the row, and the event that tells everybody else.
#include "base/text.hpp"
#include "base/time_text.hpp"
#include "dead_letter/row.hpp"
#include "dead_letter/shared.hpp"
#include "outbox/shared.hpp"
#include "queries/dead_letter.hpp"
#include "settle/dead_letter.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "settle/publish.hpp"

namespace settle::inline v0 {
namespace {

message announcement_of(const dead_letter& of) {
  auto m = dlq::as_published(of.what);
  m.topic += ".dlq";
  const auto add = [&](const char* name, std::string content) {
    m.extensions[name] = one_line(content, dlq::header_error_bytes_max);
  };
  add("settledlqreason", std::string(to_string(of.reason)));
  add("settledlqerror", of.error);
  add("settledlqattempts", std::to_string(of.attempts));
  add("settledlqconsumer", of.consumer);
  add("settledlqfailedat", to_rfc3339(of.failed_at));
  add("settledlqtopic", of.what.topic);
  if (of.log.empty()) return m;  // brokers that hand out single messages
  add("settledlqpartition", of.log);
  if (!of.position.empty()) add("settledlqoffset", of.position);
  return m;
}

// What came from another broker may have names that cannot be published here. The row is what counts.
void announce(transaction& tx, const dead_letter& of, std::int64_t id) {
  try {
    republish(tx, announcement_of(of));
  } catch (const error& e) {
    if (e.code() != errc::invalid_name) throw;
    tx.env().log->write(log_level::warning, "dead_letter_not_announced",
                        {{"consumer", of.consumer},
                         {"id", std::to_string(id)},
                         {"topic", of.what.topic + ".dlq"},
                         {"error", e.what()}});
  }
}

}  // namespace

std::int64_t write_dead_letter(transaction& tx, const dead_letter& of) {
  const auto id = with_fault_points(tx.env(), "dead_letter.insert", [&] {
    const auto made = tx.execute({queries::dead_letter::insert_letter, dlq::letter_parameters(of)});
    return made[0][queries::dead_letter::insert_letter_columns::id].integer();
  });
  announce(tx, of, id);
  return id;
}

void report_dead_letter(const environment& env, const dead_letter& of, bool with_line) {
  const std::string reason(to_string(of.reason));
  env.counters->add("settle_dead_letters_total", {{"consumer", of.consumer}, {"reason", reason}});
  if (!with_line) return;
  env.log->write(log_level::error, "dead_lettered",
                 {{"consumer", of.consumer},
                  {"id", std::to_string(of.id)},
                  {"message_id", of.what.id},
                  {"topic", of.what.topic},
                  {"type", of.what.type},
                  {"key", of.what.key},
                  {"reason", reason},
                  {"attempts", std::to_string(of.attempts)},
                  {"error", of.error}});
}

}  // namespace settle::inline v0

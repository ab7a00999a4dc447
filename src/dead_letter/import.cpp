#include "base/text.hpp"
#include "dead_letter/foreign_failures.hpp"
#include "dead_letter/shared.hpp"
#include "settle/event.hpp"

namespace settle::inline v0 {

std::function<void(const message&, transaction&)> import_as_dead_letter(std::string consumer) {
  check_name(consumer, {"consumer", event_limits::name_bytes_max});
  return [consumer = std::move(consumer)](const message& m, transaction& tx) {
    auto past = dlq::read_foreign_failures(m);
    const auto now = tx.env().now();
    dead_letter letter;
    letter.consumer = consumer;
    letter.reason = dead_letter_reason::imported;
    letter.error = past.history.empty() ? "somebody else has given it up, and it does not say why"
                                        : past.history.back().error;
    letter.attempts = past.attempts;
    letter.failed_at = now;
    for (auto& one : past.history)
      if (one.at == timestamp{}) one.at = now;
    letter.history = std::move(past.history);
    letter.what = m;
    write_dead_letter(tx, letter);
  };
}

}  // namespace settle::inline v0

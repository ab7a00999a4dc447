#include "verify/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/sortable.hpp"
#include "queries/verify.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "verify/pages.hpp"

namespace settle {
namespace {

struct emitted {
  std::string id, topic, type, key;
  outbox_state state{};
  std::size_t service = 0;  // whose outbox it is in, and its number there
  std::int64_t number = 0;
};

// Where an event stood when it was first delivered; see consume/retention.hpp.
struct delivered_at {
  std::int64_t lane = 0;
  std::string place;
};

struct at_broker {
  std::set<std::string> waiting;  // groups that have not acknowledged it
};

struct records {
  std::vector<emitted> events;
  std::unordered_map<std::string, at_broker> broker;                    // by event id
  std::map<std::string, std::set<std::string>> groups;                  // by topic
  std::map<std::string, std::unordered_set<std::string>> applied;       // consumer → message ids
  std::map<std::string, std::unordered_set<std::string>> parked, dead;  // likewise
  std::set<std::tuple<std::string, std::string, std::string>> handled;  // consumer, topic, type with a record
  // Consumer, topic and lane: up to which place records have expired.
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::string> horizons;
};

// A partition's name is its topic and a number.
std::string topic_of(const std::string& log) { return log.substr(0, log.rfind('/')); }

void read_events(database& db, std::size_t index, records& into) {
  namespace columns = queries::verify::read_outbox_events_columns;
  read_pages(
      db, {queries::verify::read_outbox_events, {}, {before_all_events}, columns::id},
      [&](const result::row& row) {
        into.events.push_back({row[columns::event_id].text(), row[columns::topic].text(),
                               row[columns::event_type].text(), row[columns::aggregate_id].text(),
                               state_of(row[columns::status].text()), index, row[columns::id].integer()});
      });
}

void read_applied(database& db, records& into) {
  namespace columns = queries::verify::read_processed_columns;
  read_pages(db, {queries::verify::read_processed, {}, {"", ""}, columns::consumer},
             [&](const result::row& row) {
               const auto& consumer = row[columns::consumer].text();
               into.applied[consumer].insert(row[columns::message_id].text());
               into.handled.emplace(consumer, row[columns::topic].text(), row[columns::event_type].text());
             });
}

void read_broker(broker_inspection& broker, records& into) {
  if (broker.log() == nullptr) {
    for (const auto& one : broker.groups()) into.groups[one.topic].insert(one.group);
    return;
  }
  broker.log()->scan(
      [&](std::string_view group, std::string_view topic) {
        into.groups[std::string(topic)].insert(std::string(group));
      },
      [&](const kept_message& one) {
        auto& entry = into.broker[std::string(one.id)];
        for (const auto group : one.waiting_for) entry.waiting.emplace(group);
      });
}

void read_consumers(database& db, records& into) {
  const auto parked = db.read().execute(queries::verify::read_parked);
  for (std::size_t i = 0; i < parked.size(); ++i) {
    namespace columns = queries::verify::read_parked_columns;
    into.parked[parked[i][columns::consumer].text()].insert(parked[i][columns::message_id].text());
  }
  const auto dead = db.read().execute(queries::verify::read_dead_letters);
  for (std::size_t i = 0; i < dead.size(); ++i) {
    namespace columns = queries::verify::read_dead_letters_columns;
    if (dead[i][columns::given_up].integer() != 0)
      into.dead[dead[i][columns::consumer].text()].insert(dead[i][columns::message_id].text());
  }
  read_applied(db, into);
  const auto expired = db.read().execute(queries::verify::read_horizons);
  for (std::size_t i = 0; i < expired.size(); ++i) {
    namespace columns = queries::verify::read_horizons_columns;
    auto& upto =
        into.horizons[{expired[i][columns::consumer].text(), topic_of(expired[i][columns::log].text()),
                       expired[i][columns::lane].integer()}];
    upto = std::max(upto, expired[i][columns::place].text());
  }
}

// Upstream first and downstream last, as in verify(): an event on the move is seen at least once.
records read(const verify_input& input) {
  records all;
  for (std::size_t i = 0; i < input.services.size(); ++i) read_events(*input.services[i], i, all);
  if (input.broker != nullptr) read_broker(*input.broker, all);
  for (auto* db : input.services) read_consumers(*db, all);
  return all;
}

// Of the events with these numbers, as far as the outbox still has them.
std::unordered_map<std::int64_t, delivered_at> read_places(database& db,
                                                           std::span<const std::int64_t> numbers) {
  std::unordered_map<std::int64_t, delivered_at> places;
  auto tx = db.read();
  tx.execute(queries::verify::plan_for_pages);
  while (!numbers.empty()) {
    const auto page = numbers.first(std::min<std::size_t>(numbers.size(), rows_per_page));
    numbers = numbers.subspan(page.size());
    const auto rows = tx.execute(queries::verify::read_places, {fmt::format("[{}]", fmt::join(page, ","))});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      namespace columns = queries::verify::read_places_columns;
      const auto number = rows[i][columns::seq].integer();
      const auto& tick = rows[i][columns::tick];
      places[number] = {rows[i][columns::lane].integer(),
                        tick.is_null() ? sortable({number}) : sortable({tick.integer(), number})};
    }
  }
  return places;
}

class records_judge {
 public:
  records_judge(const records& seen, const verify_input& input) : seen_(seen), input_(input) {}

  verify_report report() {
    report_.committed = static_cast<std::int64_t>(seen_.events.size());
    for (const auto& one : seen_.events) judge(one);
    judge_doubtful();
    report_.not_judged.emplace_back(
        "without an effect log: effects that happened twice or without a commit, order, and commits without "
        "an event");
    note(gone_,
         has_broker_log(input_)
             ? "published events that the broker holds no more, and whose consumers keep no record of them"
             : "published events that may be on their way: their consumers keep no record of them");
    note(expired_, "events whose deduplication records may have expired");
    note(strangers_, "acknowledged messages of consumers whose database was not given");
    for (const auto& [topic, groups] : seen_.groups) consumers_.insert(groups.begin(), groups.end());
    report_.consumers.assign(consumers_.begin(), consumers_.end());
    return std::move(report_);
  }

 private:
  void note(std::int64_t count, const char* what) {
    if (count > 0) report_.not_judged.push_back(fmt::format("{} {}", count, what));
  }

  bool is_recorded(const emitted& what, const std::string& consumer) const {
    const auto found = seen_.applied.find(consumer);
    if (found == seen_.applied.end()) return false;
    return found->second.contains(what.id) || found->second.contains(what.key + "-" + what.type);
  }

  static bool is_in(const std::map<std::string, std::unordered_set<std::string>>& by_consumer,
                    const emitted& what, const std::string& consumer) {
    const auto found = by_consumer.find(consumer);
    return found != by_consumer.end() && found->second.contains(what.id);
  }

  // Whether any record of this topic has.
  bool some_have_expired(const std::string& topic, const std::string& consumer) const {
    constexpr std::int64_t before_all_lanes = -1;
    const auto next = seen_.horizons.lower_bound({consumer, topic, before_all_lanes});
    return next != seen_.horizons.end() && std::get<0>(next->first) == consumer &&
           std::get<1>(next->first) == topic;
  }

  bool may_have_expired(const emitted& what, const std::string& consumer, const delivered_at& then) const {
    const auto horizon = seen_.horizons.find({consumer, what.topic, then.lane});
    return horizon != seen_.horizons.end() && then.place <= horizon->second;
  }

  void judge(const emitted& what) {
    const auto at = seen_.broker.find(what.id);
    if (at != seen_.broker.end()) ++report_.published;
    const auto groups = seen_.groups.find(what.topic);
    if (groups == seen_.groups.end()) {
      if (what.state == outbox_state::failed && at == seen_.broker.end()) note_failed(what, "");
      return;
    }
    for (const auto& consumer : groups->second)
      judge_for(what, consumer, at == seen_.broker.end() ? nullptr : &at->second);
  }

  void judge_for(const emitted& what, const std::string& consumer, const at_broker* at) {
    ++report_.expected;
    if (is_in(seen_.dead, what, consumer)) {  // these have records too
      ++report_.given_up;
    } else if (is_in(seen_.parked, what, consumer)) {
      ++report_.pending;
    } else if (is_recorded(what, consumer)) {
      ++report_.applied;
    } else if (what.state == outbox_state::failed && at == nullptr) {
      note_failed(what, consumer);
    } else if (what.state == outbox_state::pending || (at != nullptr && at->waiting.contains(consumer))) {
      ++report_.pending;
    } else if (some_have_expired(what.topic, consumer)) {
      doubtful_.push_back({&what, &consumer, at});
    } else {
      judge_unrecorded(what, consumer, at);
    }
  }

  // It depends on where they stood, and few need to be asked for that.
  void judge_doubtful() {
    std::vector<std::vector<std::int64_t>> numbers(input_.services.size());
    for (const auto& one : doubtful_) numbers[one.what->service].push_back(one.what->number);
    std::vector<std::unordered_map<std::int64_t, delivered_at>> places;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      places.push_back(read_places(*input_.services[i], numbers[i]));
    for (const auto& one : doubtful_) {
      const auto then = places[one.what->service].find(one.what->number);
      // What the outbox has dropped meanwhile is old.
      if (then == places[one.what->service].end() || may_have_expired(*one.what, *one.consumer, then->second))
        ++expired_;
      else
        judge_unrecorded(*one.what, *one.consumer, one.at);
    }
  }

  // Neither a record nor a place where it waits.
  void judge_unrecorded(const emitted& what, const std::string& consumer, const at_broker* at) {
    if (at == nullptr) {
      ++gone_;
    } else if (!seen_.applied.contains(consumer)) {
      ++strangers_;
    } else if (seen_.handled.contains({consumer, what.topic, what.type})) {
      if (report_.lost++ < examples_max())
        report_.findings.push_back(
            {"lost", consumer, what.id,
             "acknowledged without a record, though this consumer records other events of its type"});
    } else {
      --report_.expected;  // a type that this consumer has no handler for
    }
  }

  void note_failed(const emitted& what, const std::string& consumer) {
    if (report_.failed++ < examples_max())
      report_.findings.push_back({"failed", consumer, what.id, why_failed});
  }

  std::int64_t examples_max() const { return static_cast<std::int64_t>(input_.examples_max); }

  struct doubt {
    const emitted* what;
    const std::string* consumer;
    const at_broker* at;
  };

  const records& seen_;
  const verify_input& input_;
  verify_report report_;
  std::vector<doubt> doubtful_;
  std::set<std::string> consumers_;
  std::int64_t gone_ = 0;
  std::int64_t expired_ = 0;
  std::int64_t strangers_ = 0;
};

}  // namespace

bool has_broker_log(const verify_input& input) {
  return input.broker != nullptr && input.broker->log() != nullptr;
}

outbox_state state_of(const std::string& status) {
  if (status == "PUBLISHED") return outbox_state::published;
  return status == "FAILED" ? outbox_state::failed : outbox_state::pending;
}

verify_report verify_records(const verify_input& input) {
  const auto seen = read(input);
  auto report = records_judge(seen, input).report();
  report.from_records = true;
  if (!has_broker_log(input))
    report.not_judged.emplace_back(
        input.broker == nullptr ? "everything after the outbox: the broker's file was not given"
                                : "everything after the outbox: this broker cannot be read from a place");
  return report;
}

}  // namespace settle

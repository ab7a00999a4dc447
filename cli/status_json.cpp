// The status for machines. Fields are added, never renamed: dashboards read them.
#include <boost/json.hpp>

#include "cli/attention.hpp"
#include "cli/hints.hpp"
#include "cli/status_report.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

json::object service_object(const inspect::service_state& of) {
  json::array blocked;
  for (const auto& one : of.blocked)
    blocked.push_back({{"share", one.share},
                       {"waiting", one.waiting},
                       {"failures", one.failures},
                       {"last_error", safe_json_text(one.last_error)}});
  json::array consumers;
  for (const auto& one : of.consumers)
    consumers.push_back({{"consumer", safe_json_text(one.consumer)},
                         {"dedup_records", one.dedup_records},
                         {"parked", one.parked},
                         {"dead_letters", one.dead_letters}});
  json::array kinds;
  for (const auto& one : of.sagas)
    kinds.push_back({{"host", safe_json_text(one.host)},
                     {"type", safe_json_text(one.type)},
                     {"version", one.version},
                     {"status", safe_json_text(one.status)},
                     {"sagas", one.sagas},
                     {"processes", one.processes}});
  json::value oldest;
  if (of.oldest_pending_age) oldest = std::chrono::duration<double>(*of.oldest_pending_age).count();
  json::value published;
  if (of.published) published = *of.published;
  return {{"file", safe_json_text(of.name)},
          {"dialect", of.speaks == dialect::postgres ? "postgres" : "sqlite"},
          {"outbox",
           {{"pending", of.backlog.pending},
            {"published", published},
            {"delayed", of.backlog.delayed},
            {"failed", of.backlog.failed},
            {"cluster_changed", of.cluster_changed},
            {"oldest_pending_age_seconds", oldest},
            {"blocked_shares", blocked}}},
          {"relays", {{"alive", of.relaying.alive}, {"shares_owned", of.relaying.shares_owned}}},
          {"consumers", consumers},
          {"sagas",
           {{"running", inspect::sagas_in(of.sagas, "RUNNING")},
            {"compensating", inspect::sagas_in(of.sagas, "COMPENSATING")},
            {"held", inspect::sagas_in(of.sagas, "HELD")},
            {"kinds", kinds}}}};
}

// What a broker does not tell is null.
json::value number_or_null(const std::optional<std::int64_t>& of) {
  return of ? json::value(*of) : json::value();
}

json::object broker_object(const inspect::broker_state& of) {
  json::array topics;
  for (const auto& one : of.topics)
    topics.push_back({{"topic", safe_json_text(one.name)},
                      {"messages", number_or_null(one.messages)},
                      {"partitions", one.partitions}});
  json::array groups;
  for (const auto& one : of.groups) {
    json::object group{{"group", safe_json_text(one.group)},
                       {"topic", safe_json_text(one.topic)},
                       {"lag", number_or_null(one.lag)},
                       {"members_alive", one.members_alive}};
    json::array partitions;
    for (const auto& [partition, lag] : one.partitions)
      partitions.push_back({{"partition", partition}, {"lag", lag}});
    if (!partitions.empty()) group["partitions"] = std::move(partitions);
    groups.push_back(std::move(group));
  }
  return {{"file", safe_json_text(of.name)},
          {"bytes", number_or_null(of.bytes)},
          {"trouble", of.trouble.empty() ? json::value() : json::value(safe_json_text(of.trouble))},
          {"topics", topics},
          {"groups", groups}};
}

json::object object_of(const inspect::service_state& of) { return service_object(of); }
json::object object_of(const inspect::broker_state& of) { return broker_object(of); }

template <class State>
json::object named_object(const listed_store& of, const inspect::answer_of<State>& told) {
  if (!told.state)
    return {{"file", safe_json_text(of.store)},
            {"state", "unknown"},
            {"error",
             {{"code", to_string(told.code)},
              {"message", safe_json_text(with_given(why_unknown(told), of.given))}}}};
  auto made = object_of(*told.state);
  json::array attention;
  for (const auto& one : attention_of(*told.state))
    attention.push_back(json::value(safe_json_text(with_given(one, of.given))));
  made["state"] = attention.empty() ? "ok" : "attention";
  made["attention"] = std::move(attention);
  return made;
}

template <class State>
json::object named_objects(const std::vector<listed_store>& of,
                           const std::vector<inspect::answer_of<State>>& told) {
  json::object all;
  for (std::size_t i = 0; i < of.size(); ++i) all[of[i].name] = named_object(of[i], told[i]);
  return all;
}

}  // namespace

std::string status_json(const status_of_all& all) {
  return json::serialize(json::object{{"services", named_objects(all.services, all.told.services)},
                                      {"brokers", named_objects(all.brokers, all.told.brokers)}}) +
         "\n";
}

std::string status_json(const inspect::service_state& service, const inspect::broker_state& broker) {
  return json::serialize(
             json::object{{"service", service_object(service)}, {"broker", broker_object(broker)}}) +
         "\n";
}

}  // namespace settle::cli

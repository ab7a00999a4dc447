// The status for people: what is wrong comes last, where the eye rests, with what to do about it.
#include <fmt/format.h>

#include <algorithm>

#include "cli/attention.hpp"
#include "cli/status_report.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "outbox/lanes.hpp"

namespace settle::cli {
namespace {

using rows = std::vector<std::vector<std::string>>;

std::string sagas_text(const std::vector<inspect::open_sagas>& of) {
  if (of.empty()) return {};
  rows lines{{"saga", "host", "status", "sagas", "processes"}};
  for (const auto& one : of)
    lines.push_back({fmt::format("{} {}", for_terminal(one.type), one.version), for_terminal(one.host),
                     one.status, grouped(one.sagas), grouped(one.processes)});
  using enum align;
  return '\n' + table({left, left, left, right, right}, lines, 2);
}

std::string service_text(const inspect::service_state& of) {
  auto out = fmt::format("Service  {}\n", for_terminal(of.name));
  const auto since =
      of.oldest_pending_age ? fmt::format(" (oldest for {})", age(*of.oldest_pending_age)) : std::string();
  out += fmt::format("  outbox   {} pending{}", grouped(of.backlog.pending), since);
  if (of.backlog.delayed > 0) out += fmt::format(", {} delayed", grouped(of.backlog.delayed));
  if (of.backlog.failed > 0) out += fmt::format(", {} failed", grouped(of.backlog.failed));
  if (of.published) out += fmt::format(", {} published", grouped(*of.published));
  out += '\n';
  out += fmt::format("  relays   {} alive", of.relaying.alive);
  if (of.relaying.alive > 0)
    out += fmt::format(", owning {} of the {} shares of keys", of.relaying.shares_owned, outbox::share_count);
  out += '\n';
  if (!of.sagas.empty())
    out += fmt::format(
        "  sagas    {} running, {} compensating, {} held\n", grouped(inspect::sagas_in(of.sagas, "RUNNING")),
        grouped(inspect::sagas_in(of.sagas, "COMPENSATING")), grouped(inspect::sagas_in(of.sagas, "HELD")));
  if (!of.consumers.empty()) {
    rows lines{{"consumer", "dedup records", "parked", "dead letters"}};
    for (const auto& one : of.consumers)
      lines.push_back({for_terminal(one.consumer), grouped(one.dedup_records), grouped(one.parked),
                       grouped(one.dead_letters)});
    out += '\n' + table({align::left, align::right, align::right, align::right}, lines, 2);
  }
  return out + sagas_text(of.sagas);
}

// What a broker does not tell is left out.
std::string grouped_if_known(const std::optional<std::int64_t>& of) { return of ? grouped(*of) : ""; }

// Of a group that waits: where.
std::string partitions_text(const inspected_group& of) {
  std::string waiting;
  for (const auto& [partition, lag] : of.partitions)
    if (lag > 0) waiting += fmt::format("{}{} in {}", waiting.empty() ? "" : ", ", grouped(lag), partition);
  return waiting.empty() ? ""
                         : fmt::format("  {} on {} waits in partitions: {}\n", for_terminal(of.group),
                                       for_terminal(of.topic), waiting);
}

std::string broker_text(const inspect::broker_state& of) {
  auto out = fmt::format("Broker   {}\n", for_terminal(of.name));
  if (of.topics.empty()) return out + "  no topics yet\n";
  rows topics{{"topic", "messages", "partitions"}};
  for (const auto& one : of.topics)
    topics.push_back({for_terminal(one.name), grouped_if_known(one.messages), grouped(one.partitions)});
  out += table({align::left, align::right, align::right}, topics, 2) + '\n';
  if (of.groups.empty()) return out + "  no consumer groups yet\n";
  rows groups{{"group", "topic", "lag", "members alive"}};
  for (const auto& one : of.groups)
    groups.push_back({for_terminal(one.group), for_terminal(one.topic), grouped_if_known(one.lag),
                      grouped(one.members_alive)});
  out += table({align::left, align::left, align::right, align::right}, groups, 2);
  for (const auto& one : of.groups) out += partitions_text(one);
  if (!std::ranges::all_of(of.groups, &inspected_group::lag_has_what_members_hold))
    out +=
        "  lag is what waits in the queues; what members have been sent and not acknowledged is not in it\n";
  return out;
}

std::string attention_text(const inspect::service_state& service, const inspect::broker_state& broker) {
  std::string out;
  for (const auto& one : attention_of(service)) out += fmt::format("! {}\n", one);
  for (const auto& one : attention_of(broker)) out += fmt::format("! {}\n", one);
  return out;
}

}  // namespace

std::string status_text(const inspect::service_state& service, const inspect::broker_state& broker) {
  const auto attention = attention_text(service, broker);
  return service_text(service) + '\n' + broker_text(broker) + (attention.empty() ? "" : '\n' + attention);
}

}  // namespace settle::cli

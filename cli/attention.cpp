#include "cli/attention.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "cli/text.hpp"

namespace settle::cli {

namespace {

void add_sagas(const std::vector<inspect::open_sagas>& sagas, std::vector<std::string>& to) {
  if (const auto held = inspect::sagas_in(sagas, "HELD"); held > 0)
    to.push_back(fmt::format("{} HELD, a person is needed: see `settle saga list --held`",
                             held == 1 ? "1 saga is" : grouped(held) + " sagas are"));
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::int64_t> stranded;
  for (const auto& one : sagas)
    if (one.processes == 0 && one.status != "HELD") stranded[{one.host, one.type, one.version}] += one.sagas;
  for (const auto& [kind, count] : stranded) {
    const auto& [host, type, version] = kind;
    to.push_back(
        fmt::format("{} of {} {}, host {}, but no process that knows {} is running: start one; see "
                    "`settle saga list --type {}`",
                    count == 1 ? "1 saga" : grouped(count) + " sagas", for_terminal(type), version,
                    for_terminal(host), count == 1 ? "it" : "them", for_terminal(type)));
  }
}

}  // namespace

std::vector<std::string> attention_of(const inspect::service_state& service) {
  std::vector<std::string> all;
  if (service.cluster_changed)
    all.emplace_back(
        "this is not the server that the outbox was written on (cluster_changed): relays have stopped, and "
        "what is pending cannot be told; see `settle outbox rebase --help`");
  add_sagas(service.sagas, all);
  for (const auto& one : service.blocked)
    all.push_back(fmt::format("share {} is blocked, {} waiting, {}: {}", one.share,
                              counted(one.waiting, "event"), counted(one.failures, "failed attempt"),
                              for_terminal(one.last_error)));
  if (const auto failed = service.backlog.failed; failed > 0)
    all.push_back(fmt::format("{} given up because the broker rejects {}: see `settle outbox failed`",
                              failed == 1 ? "1 event was" : grouped(failed) + " events were",
                              failed == 1 ? "it" : "them"));
  for (const auto& one : service.consumers)
    if (one.dead_letters > 0)
      all.push_back(fmt::format("{} has {}: see `settle dlq list --consumer {}`", for_terminal(one.consumer),
                                counted(one.dead_letters, "dead letter"), for_terminal(one.consumer)));
  if (service.backlog.pending > 0 && service.relaying.alive == 0)
    all.push_back(fmt::format("{}, but no relay is alive: run `settle relay`",
                              counted(service.backlog.pending, "pending event")));
  return all;
}

std::vector<std::string> attention_of(const inspect::broker_state& broker) {
  std::vector<std::string> all;
  if (!broker.trouble.empty()) all.push_back(for_terminal(broker.trouble));
  for (const auto& one : broker.groups)
    if (one.lag.value_or(0) > 0 && one.members_alive == 0)
      all.push_back(fmt::format(
          "group {} has {} of {} to read and no member is alive: start the consumer, or if it is retired, "
          "`settle group remove {}`; until then they are kept",
          for_terminal(one.group), counted(*one.lag, "message"), for_terminal(one.topic),
          for_terminal(one.group)));
  return all;
}

}  // namespace settle::cli

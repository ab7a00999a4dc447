#include "rabbitmq/inspection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace settle::inline v0::rabbitmq {
namespace {

constexpr duration answer_within = std::chrono::seconds(10);

}  // namespace

topology& server_inspection::connected(const limit& within) {
  if (on_ && on_->broken()) {
    topology_.reset();
    on_.reset();
  }
  if (!on_) {
    on_ = std::make_unique<connection>(to_, with_, "settle inspection", within);
    topology_ = std::make_unique<topology>(*on_, names{with_.prefix});
  }
  return *topology_;
}

// The server tells of an alarm only to those who publish. So a message goes to a queue that nobody has, and
// is dropped. While the alarm lasts, the server reads nothing more from that line: so it is one of its own.
std::string server_inspection::trouble() {
  const std::scoped_lock lock(mutex_);
  const auto within = limit::within(answer_within);
  if (probing_ && probing_->ended()) {
    probing_.reset();
    probe_on_.reset();
  }
  if (!probing_) {
    probe_on_ = std::make_unique<connection>(to_, with_, "settle probe", within);
    probing_ = std::make_unique<channel>(*probe_on_, within);
    probing_->call(AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t{}, within);
  }
  auto alarm = probe_on_->blocked();
  if (!alarm) {
    amqp_basic_properties_t nothing{};
    probing_->publish("", names{with_.prefix}.registry() + ".nobody", nothing, "", within);
    const auto said = probing_->await_news(within);
    if (said.confirmations.empty()) alarm = said.blocked;
  }
  if (!alarm) return {};
  return fmt::format("{} takes no messages: {}. `rabbitmq-diagnostics alarms` on the server tells more",
                     to_.name(), *alarm);
}

std::vector<inspected_topic> server_inspection::topics(std::size_t topics_max) {
  const std::scoped_lock lock(mutex_);
  const auto within = limit::within(answer_within);
  auto& at = connected(within);
  std::vector<inspected_topic> all;
  for (const auto& one : at.registry(within)) {
    if (all.size() >= topics_max) break;
    if (one.group.empty() && at.has_exchange(names{with_.prefix}.exchange(one.topic), within))
      all.push_back({.name = one.topic, .partitions = 0, .messages = std::nullopt});
  }
  return all;
}

std::optional<inspected_group> server_inspection::group(topology& at, const registered& of,
                                                        const limit& within) const {
  const names called{with_.prefix};
  const auto members = at.look_at(called.members(of.group, of.topic), within);
  if (!members) return std::nullopt;
  inspected_group found{.group = of.group,
                        .topic = of.topic,
                        .members_alive = members->consumers,
                        .lag = 0,
                        .oldest = std::nullopt,
                        .newest = std::nullopt,
                        .lag_has_what_members_hold = false};
  for (int i = 0; i < of.queues; ++i)
    if (const auto queue = at.look_at(called.queue(of.group, of.topic, i), within))
      *found.lag += queue->ready;
  return found;
}

std::vector<inspected_group> server_inspection::groups(const inspect_groups& wanted) {
  const std::scoped_lock lock(mutex_);
  const auto within = limit::within(answer_within);
  auto& at = connected(within);
  std::vector<inspected_group> all;
  for (const auto& one : at.registry(within)) {
    if (one.group.empty()) continue;
    if (auto found = group(at, one, within)) all.push_back(std::move(*found));
  }
  std::ranges::sort(all, {}, [](const auto& one) { return std::tie(one.group, one.topic); });
  all.resize(std::min(all.size(), wanted.groups_max));
  return all;
}

}  // namespace settle::inline v0::rabbitmq

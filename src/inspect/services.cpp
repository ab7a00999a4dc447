#include "inspect/services.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error_detail.hpp"

namespace settle::inspect {
namespace {

using steady = std::chrono::steady_clock;

template <class State>
answer_of<State> answer_from(const source_of<State>& asked) {
  answer_of<State> made{asked.name, std::nullopt};
  try {
    made.state = asked.read();
  } catch (const error& e) {
    made.code = e.code();
    made.why = detail_of(e);
  } catch (const std::exception& e) {
    made.why = e.what();
  }
  return made;
}

template <class Asked>
auto collect(Asked& all, steady::time_point until, duration at_most) {
  std::vector<typename std::decay_t<decltype(all.front()->question.wait({}))>::value_type> answers;
  for (auto& one : all) {
    const auto left = std::max(steady::duration::zero(), until - steady::now());
    auto found = one->question.wait(std::chrono::duration_cast<duration>(left));
    if (!found) {
      found.emplace();
      found->name = one->name;
      found->why = fmt::format("no answer within {} s", std::chrono::duration<double>(at_most).count());
    }
    answers.push_back(std::move(*found));
  }
  return answers;
}

}  // namespace

template <class State>
services_inquiry::asked<State>::asked(source_of<State> from)
    : name(from.name), question([from = std::move(from)] { return answer_from(from); }) {}

bool services_answer::complete() const {
  const auto is_known = [](const auto& one) { return one.state.has_value(); };
  return std::ranges::all_of(services, is_known) && std::ranges::all_of(brokers, is_known);
}

services_inquiry::services_inquiry(std::vector<service_source> services, std::vector<broker_source> brokers) {
  for (auto& one : services) services_.push_back(std::make_unique<asked<service_state>>(std::move(one)));
  for (auto& one : brokers) brokers_.push_back(std::make_unique<asked<broker_state>>(std::move(one)));
}

services_inquiry::~services_inquiry() = default;

services_answer services_inquiry::ask(duration at_most) {
  const auto until = steady::now() + at_most;
  for (auto& one : brokers_) one->question.begin();
  for (auto& one : services_) one->question.begin();
  return {collect(services_, until, at_most), collect(brokers_, until, at_most)};
}

bool services_inquiry::is_waiting() {
  const auto is_under_way = [](auto& one) { return !one->question.wait(duration::zero()); };
  return std::ranges::any_of(services_, is_under_way) || std::ranges::any_of(brokers_, is_under_way);
}

}  // namespace settle::inspect

#include "broker/routing.hpp"

#include <algorithm>
#include <map>

namespace settle::inline v0 {
namespace {

constexpr std::string_view replay_mark = "settlereplayfor";
constexpr std::string_view dead_letter_mark = "settledlqconsumer";

bool keeps_its_name(const message& what) {
  return what.extensions.contains(replay_mark) || what.extensions.contains(dead_letter_mark);
}

// What goes to one broker.
struct parcel {
  std::vector<message> messages = {};
  std::vector<std::size_t> numbers = {};  // of them in the batch
};

}  // namespace

std::optional<std::string> problem_of(const topic_route& of) {
  const auto stars = [](std::string_view text) { return std::ranges::count(text, '*'); };
  if (of.topic.empty()) return "topic is missing: a name, or a pattern such as orders.*";
  if (stars(of.topic) > 1) return "topic has more than one *";
  if (stars(of.as) > 1) return "as has more than one *";
  if (stars(of.as) > 0 && stars(of.topic) == 0)
    return "as has a *, and its topic has none that it could stand for";
  if (stars(of.as) == 0 && stars(of.topic) > 0 && !of.as.empty())
    return "as would give every topic of its pattern one name, and then keys of different topics would share "
           "their order; it needs a * as well";
  return std::nullopt;
}

std::optional<std::string> renamed_by(const topic_route& by, std::string_view topic) {
  const std::string_view pattern = by.topic;
  const auto star = pattern.find('*');
  std::string_view stands_for;
  if (star == std::string_view::npos) {
    if (topic != pattern) return std::nullopt;
  } else {
    const auto before = pattern.substr(0, star);
    const auto after = pattern.substr(star + 1);
    if (topic.size() < before.size() + after.size() || !topic.starts_with(before) || !topic.ends_with(after))
      return std::nullopt;
    stands_for = topic.substr(before.size(), topic.size() - before.size() - after.size());
  }
  if (by.as.empty()) return std::string(topic);
  auto name = by.as;
  if (const auto at = name.find('*'); at != std::string::npos) name.replace(at, 1, stands_for);
  return name;
}

routed_publisher::place routed_publisher::place_of(const message& what) const {
  for (const auto& one : routes_) {
    auto name = renamed_by(one.route, what.topic);
    if (!name) continue;
    if (*name == what.topic || keeps_its_name(what)) return {one.to, std::nullopt};
    return {one.to, std::move(name)};
  }
  return {&usual_, std::nullopt};
}

std::vector<publish_result> routed_publisher::publish(std::span<const message> batch,
                                                      const call_limits& limits) {
  std::map<publisher*, parcel> parcels;
  std::vector<place> places;
  bool as_they_are = true;
  for (const auto& one : batch) {
    places.push_back(place_of(one));
    as_they_are = as_they_are && places.back().to == places.front().to && !places.back().renamed;
  }
  if (batch.empty()) return {};
  if (as_they_are) return places.front().to->publish(batch, limits);
  for (std::size_t n = 0; n < batch.size(); ++n) {
    auto& to = parcels[places[n].to];
    to.messages.push_back(batch[n]);
    to.numbers.push_back(n);
    if (places[n].renamed) to.messages.back().topic = std::move(*places[n].renamed);
  }
  std::vector<publish_result> results(batch.size());
  for (auto& [to, what] : parcels) {
    auto answers = to->publish(what.messages, limits);
    for (std::size_t i = 0; i < what.numbers.size(); ++i) results[what.numbers[i]] = std::move(answers[i]);
  }
  return results;
}

}  // namespace settle::inline v0

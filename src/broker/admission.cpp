#include "broker/admission.hpp"

#include <set>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

void check_names(const message& m) {
  constexpr auto name_max = event_limits::name_bytes_max;
  constexpr auto text_max = event_limits::header_bytes_max;
  check_name(m.topic, {"topic", name_max});
  check_name(m.id, {"message id", text_max, true});
  check_name(m.source, {"source", text_max, true});
  check_name(m.type, {"event type", name_max, true});
  check_name(m.key, {"key", event_limits::key_bytes_max, true});
  check_name(m.subject, {"subject", text_max, true});
  check_name(m.content_type, {"content type", name_max, true});
  for (const auto& [name, content] : m.extensions) {
    check_name(name, {"attribute name", name_max});
    check_name(content, {"value of attribute '" + name + "'", text_max, true});
  }
}

std::string trouble_with(const message& m, const std::function<std::string(const message&)>& refusal) {
  try {
    check_names(m);
  } catch (const error& e) {
    return e.what();
  }
  return refusal ? refusal(m) : std::string();
}

}  // namespace

admission admit(std::span<const message> batch, const std::function<std::string(const message&)>& refusal) {
  admission made{std::vector<publish_result>(batch.size()), {}};
  std::set<std::pair<std::string_view, std::string_view>> blocked;  // topic and key
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& m = batch[i];
    if (!m.key.empty() && blocked.contains({m.topic, m.key})) {
      made.results[i] = {publish_status::message_rejected, "an earlier message of its key was rejected"};
    } else if (auto why = trouble_with(m, refusal); !why.empty()) {
      blocked.emplace(m.topic, m.key);
      made.results[i] = {publish_status::message_rejected, std::move(why)};
    } else {
      made.accepted.push_back(i);
    }
  }
  return made;
}

}  // namespace settle::inline v0

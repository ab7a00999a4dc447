#include "rabbitmq/milestones.hpp"

#include <string_view>

namespace settle::inline v0::rabbitmq {
namespace {

constexpr char separator = '\n';  // of two names of queues

void put(channel& on, const std::string& queue, std::string_view header, const std::string& text,
         const limit& within) {
  table headers;
  headers.add(header, std::string_view(text));
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = headers.get();
  on.publish("", queue, properties, "", within);
}

}  // namespace

std::string milestone_text(const std::string& answers_to, const std::string& queue) {
  return answers_to + separator + queue;
}

void answer_milestone(channel& on, const std::string& text, const limit& within) {
  put(on, text.substr(0, text.find(separator)), passed_header, text, within);
}

milestones::milestones(const address& to, const options& with, const std::string& answers_to,
                       const std::vector<std::string>& queues, const limit& within)
    : answers_to_(answers_to),
      on_(std::make_unique<connection>(to, with, "settle backlog", within)),
      control_(std::make_unique<channel>(*on_, within)),
      missing_(queues.begin(), queues.end()) {
  amqp_queue_declare_t answers{};
  answers.queue = as_bytes(answers_to_);
  answers.exclusive = 1;
  control_->call(AMQP_QUEUE_DECLARE_METHOD, answers, within);
  for (const auto& queue : queues)
    put(*control_, queue, milestone_header, milestone_text(answers_to_, queue), within);
  control_->flush();
}

bool milestones::is_done(const call_limits& limits) {
  const auto within = limit::of(limits);
  while (!missing_.empty()) {
    const auto one = control_->get(answers_to_, within);
    if (!one) return false;
    const auto* text = one->content.header(passed_header);
    if (text != nullptr) missing_.erase(text->substr(text->find(separator) + 1));
  }
  return true;
}

}  // namespace settle::inline v0::rabbitmq

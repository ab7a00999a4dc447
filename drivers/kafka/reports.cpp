#include "kafka/reports.hpp"

#include "kafka/failure.hpp"

namespace settle::inline v0::kafka {

bool reports::is_blocked(const message& one) const {
  return blocked_topics_.contains(one.topic) || (!one.key.empty() && blocked_.contains({one.topic, one.key}));
}

void reports::finish(std::size_t index, publish_result with) {
  results_[index] = std::move(with);
  done_.insert(index);
}

std::vector<std::size_t> reports::next() {
  std::vector<std::size_t> wanted;
  for (const auto index : left_) {
    if (done_.contains(index)) continue;
    if (const auto topic = blocked_topics_.find(batch_[index].topic); topic != blocked_topics_.end())
      finish(index, {publish_status::topic_unavailable, topic->second});
    else if (is_blocked(batch_[index]))
      finish(index, {publish_status::destination_failed, "an earlier message of its key was not confirmed"});
    else if (!one_by_one_ || wanted.empty())
      wanted.push_back(index);
  }
  std::erase_if(left_, [&](std::size_t index) { return done_.contains(index); });
  attempt_size_ = wanted.size();
  failed_ = false;
  others_may_go_on_ = false;
  return wanted;
}

void reports::take(std::size_t index, rd_kafka_resp_err_t report, const std::string& why) {
  open_.erase(index);
  if (done_.contains(index)) return;
  const auto status = status_of(report);
  if (status == publish_status::confirmed) return finish(index, {});
  failed_ = true;
  if (status == publish_status::destination_failed) return;
  others_may_go_on_ = true;
  if (is_too_large(report) && attempt_size_ > 1)
    one_by_one_ = true;
  else
    refuse(index, {status, why});
}

void reports::refuse(std::size_t index, publish_result why) {
  const auto& one = batch_[index];
  if (why.status == publish_status::topic_unavailable)
    blocked_topics_.emplace(one.topic, why.reason);
  else
    blocked_.emplace(one.topic, one.key);
  finish(index, std::move(why));
}

void reports::end_attempt(const std::string& why) {
  const bool is_destination = !others_may_go_on_ && (failed_ || !open_.empty());
  open_.clear();
  if (!is_destination) return;
  for (const auto index : left_)
    if (!done_.contains(index)) finish(index, {publish_status::destination_failed, why});
  left_.clear();
}

void hold_back_later_ones(std::span<const message> batch, std::vector<publish_result>& results) {
  std::set<std::pair<std::string_view, std::string_view>> held;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& one = batch[i];
    if (one.key.empty()) continue;
    if (results[i].status != publish_status::confirmed)
      held.emplace(one.topic, one.key);
    else if (held.contains({one.topic, one.key}))
      results[i] = {publish_status::destination_failed, "an earlier message of its key was not confirmed"};
  }
}

}  // namespace settle::inline v0::kafka

// What has become of the messages of one batch. Pure: delivery reports in, results and what to send next out.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settle/driver/broker.hpp"

namespace settle::inline v0::kafka {

// A batch goes out in attempts. Each ends with all of its messages reported, or with the first failure: then
// the rest is called back, so that nothing overtakes what has failed.
class reports {
 public:
  // `accepted` are indices of the batch, in order; `results` is where they end.
  reports(std::span<const message> batch, std::vector<std::size_t> accepted,
          std::vector<publish_result>& results)
      : batch_(batch), left_(std::move(accepted)), results_(results) {}

  // What the next attempt has to send, in order. Empty: there is nothing left to do. Once a batch was too
  // large, one message at a time shows which one it is.
  std::vector<std::size_t> next();
  // False: an earlier message of its key, or its topic, has been refused meanwhile.
  bool may_send(std::size_t index) const { return !is_blocked(batch_[index]); }
  void sent(std::size_t index) { open_.insert(index); }
  // Not sent: nobody will take it as it is, or its topic.
  void refuse(std::size_t index, publish_result why);

  void take(std::size_t index, rd_kafka_resp_err_t report, const std::string& why);

  bool complete() const { return open_.empty(); }
  bool has_failed() const { return failed_; }

  // The attempt is over. What it called back goes into the next one if a message or a topic was to blame;
  // otherwise the destination is, and everything left has failed with it.
  void end_attempt(const std::string& why);

 private:
  bool is_blocked(const message& one) const;
  void finish(std::size_t index, publish_result with);

  std::span<const message> batch_;
  std::vector<std::size_t> left_;  // without a result, in order
  std::vector<publish_result>& results_;
  std::set<std::size_t> open_ = {};  // sent and not reported
  std::set<std::size_t> done_ = {};
  std::set<std::pair<std::string_view, std::string_view>> blocked_ = {};  // topic and key
  std::map<std::string_view, std::string> blocked_topics_ = {};           // and why
  std::size_t attempt_size_ = 0;
  bool one_by_one_ = false;
  bool failed_ = false;
  bool others_may_go_on_ = false;
};

// Once a message is not confirmed, no later one of its topic and key is: whoever sends again would put it
// before the earlier one.
void hold_back_later_ones(std::span<const message> batch, std::vector<publish_result>& results);

}  // namespace settle::inline v0::kafka

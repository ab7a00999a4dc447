#include "kafka/log_reader.hpp"

namespace settle::inline v0::kafka {

// The library wants a group to read for. It is never joined, so there is none.
client& log_reader::reading() {
  if (!reading_) {
    reading_ = std::make_unique<client>(at_.where(), at_.settings(), RD_KAFKA_CONSUMER,
                                        client::settings{{"group.id", at_.group_name("settle-inspection")},
                                                         {"enable.auto.commit", "false"},
                                                         {"enable.partition.eof", "true"},
                                                         {"auto.offset.reset", "earliest"},
                                                         {"queued.max.messages.kbytes", "8192"}});
    rd_kafka_poll_set_consumer(reading_->get());
  }
  return *reading_;
}

void log_reader::read(const std::string& topic, const std::map<int, std::int64_t>& from, std::size_t most,
                      const limit& within, const taker& take) {
  if (from.empty() || most == 0) return;
  auto& by = reading();
  auto list = make_list(from.size());
  for (const auto& [partition, offset] : from)
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = offset;
  rd_kafka_assign(by.get(), list.get());
  std::map<int, std::size_t> left;
  for (const auto& [partition, unused] : from) left[partition] = most;
  while (!left.empty()) {
    if (within.is_over()) {
      const auto why = by.complaint("reading topic " + topic + " takes too long");
      reading_.reset();
      throw refused(RD_KAFKA_RESP_ERR__TIMED_OUT, why);
    }
    constexpr duration slice = std::chrono::milliseconds(100);
    const message_handle one(
        rd_kafka_consumer_poll(by.get(), static_cast<int>(within.at_most(slice).left().count())));
    if (!one || one->rkt == nullptr || topic != rd_kafka_topic_name(one->rkt)) continue;
    const auto wanted = left.find(one->partition);
    if (wanted == left.end()) continue;
    if (one->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      left.erase(wanted);
    } else if (one->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      take(*one);
      if (--wanted->second == 0) left.erase(wanted);
    }
  }
  rd_kafka_assign(by.get(), nullptr);
}

}  // namespace settle::inline v0::kafka

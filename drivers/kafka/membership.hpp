// One life of a member of a group: from joining until it leaves or vanishes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kafka/cluster.hpp"

namespace settle::inline v0::kafka {

struct place {
  std::string topic;  // with the prefix
  int partition = 0;
  friend auto operator<=>(const place&, const place&) = default;
};

// The offset that a group has committed, or is to commit.
struct committed_offset {
  place at;
  std::int64_t offset = -1;  // less than 0: none
  std::string metadata = {};
};

class membership final : listener {
 public:
  // Called while it is polled.
  struct hooks {
    std::function<void(const std::vector<place>&)> assigned;
    std::function<void(const std::vector<place>&, bool lost)> revoked;
  };

  // Does not join yet.
  membership(cluster& at, const std::string& group, hooks told);
  ~membership();  // leaves, if that is quick

  void join(const std::vector<std::string>& topics);
  // Waits for the end of joining, at which the library is fit to be closed, and leaves. Nothing may be asked
  // of it afterwards.
  void leave(const limit& within);

  // The next message, or a failure in the shape of one; null: none now.
  message_handle poll();
  rd_kafka_queue_t& queue() const { return *queue_; }
  bool is_waiting() const { return rd_kafka_queue_length(queue_.get()) > 0; }
  // Whoever else has our partitions, we have not been asked.
  bool has_lost_assignment() const { return rd_kafka_assignment_lost(on_->get()) != 0; }
  std::string complaint(const std::string& what) const { return on_->complaint(what); }

  // What the group has committed. Throws `refused`.
  std::vector<committed_offset> committed(const std::vector<place>& of, const limit& within);
  // Throws `refused`, also for what is lost.
  void commit(const std::vector<committed_offset>& wanted, const limit& within);

  // Reading of a partition begins again with this offset. False: the library is not ready; try again.
  bool seek(const place& at, std::int64_t offset, const limit& within);
  void pause(const std::vector<place>& these);
  void resume(const std::vector<place>& these);

 private:
  void rebalanced(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t& of) override;
  rd_kafka_resp_err_t commit_once(const std::vector<committed_offset>& wanted, const limit& within);

  hooks told_;
  std::unique_ptr<client> on_;
  queue_handle queue_;
  bool has_joined_ = false;
  bool was_assigned_ = false;
  bool has_left_ = false;
};

}  // namespace settle::inline v0::kafka

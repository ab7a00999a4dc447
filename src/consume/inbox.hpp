// Messages in memory between fetch and acknowledgement, and what may run next. Pure.
//
// A message that failed waits for its time and runs alone then; later ones of its key wait behind it,
// other keys go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "settle/broker.hpp"

namespace settle::consume {

struct held_message {
  delivery content;
  std::int64_t failures = 0;
  timestamp retry_at{};
};

class inbox {
 public:
  void add(std::vector<delivery> arrived);

  // Forgets everything of these partitions.
  void revoke(std::span<const std::uint32_t> partitions);

  // Up to `most` messages that may run in one transaction now, in order of arrival; or the one failed
  // message whose time has come.
  std::vector<held_message*> next_batch(std::size_t most, timestamp now);

  void finished(std::span<held_message* const> done);
  void failed(held_message& one, timestamp retry_at);
  void succeeded(held_message& one);  // its failures are forgotten; it stays until it is finished

  std::size_t size() const { return messages_.size(); }
  std::size_t waiting() const { return waiting_; }  // messages that have failed and wait for another try

  // When the next failed message may run; `otherwise` if none waits.
  timestamp next_retry(timestamp otherwise) const;

 private:
  std::list<held_message> messages_;  // addresses stay valid while others come and go
  std::size_t waiting_ = 0;
};

// Whether the two must keep their order.
bool same_key(const message& a, const message& b);

}  // namespace settle::consume

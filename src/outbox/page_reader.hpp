// Reads the pages of a large window in a thread of its own, a few ahead of whoever publishes them: the server
// works while the broker does.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "outbox/window.hpp"
#include "settle/database.hpp"

namespace settle::outbox {

struct page {
  share_group of;
  cursor end;
  result rows;
};

class page_reader {
 public:
  // Reads one page. A page that ends within its window (end.upto > 0) is followed by another.
  using fetch = std::function<page(const share_group&)>;

  page_reader(const share_group& first, fetch how);
  ~page_reader();

  // The next page, if it is the one that is wanted; else this reader is of no use any more. Throws what the
  // reading threw.
  std::optional<page> take(const share_group& wanted);

 private:
  void run(const std::stop_token& stop, share_group next);

  fetch fetch_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<page> ready_;
  std::exception_ptr failed_;
  bool ended_ = false;
  std::jthread thread_;
};

}  // namespace settle::outbox

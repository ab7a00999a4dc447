// The routes of a server: those in force, and replaced ones whose requests have not ended.
//
// A request keeps the table that it was matched with, so the last one to let go of replaced routes is a
// session or a job, on the thread that does all reading and writing. Their end may wait, though: handlers own
// pools of databases, routes own groups of workers. So it is brought about by a thread of its own, which a
// server has from its first replacement on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/routes.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {

// Routers that nobody uses any more, and the thread that destroys them. Any thread.
class retired_routers {
 public:
  struct entry {
    router routes;
    entry* next = nullptr;
  };

  retired_routers() = default;
  // All of them have been destroyed afterwards.
  ~retired_routers();
  retired_routers(const retired_routers&) = delete;
  retired_routers& operator=(const retired_routers&) = delete;

  // Throws if there can be no thread.
  void start();
  // Needs no memory. Before start() it is destroyed at once.
  void take(entry* one) noexcept;

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable came_;
  entry* first_ = nullptr;
  bool ending_ = false;
  std::thread thread_;
};

class routing {
 public:
  using table = std::shared_ptr<const router::table>;

  explicit routing(router first);
  // Nobody else has a table of this any more.
  ~routing();
  routing(const routing&) = delete;
  routing& operator=(const routing&) = delete;

  // Any thread. If it throws, nothing has changed.
  void replace(router next);

  // By the one thread that serves requests. Needs no memory.
  const table& in_force() {
    if (version_.load() != adopted_version_) adopt();
    return adopted_;
  }

  // All groups that a table has which is in use.
  std::vector<std::shared_ptr<worker_group>> groups();

 private:
  table prepared(router& next);
  void note_groups(const router::table& of);
  void adopt() noexcept;

  retired_routers retired_;
  std::mutex mutex_;
  // Of every pattern that there has been, as the counters know them too; so one pattern is counted as one.
  std::map<std::string, std::size_t, std::less<>> numbers_;
  std::vector<std::weak_ptr<worker_group>> groups_;
  table current_;
  std::atomic<std::uint64_t> version_ = 0;  // of current_

  table adopted_;  // what current_ was when the thread that serves looked last
  std::uint64_t adopted_version_ = 0;
};

}  // namespace settle::inline v0::http

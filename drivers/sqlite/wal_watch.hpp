// Sleeps until a database has been committed to, by this process or another.
//
// SQLite writes its log, syncs it, and only then makes the commit visible, through shared memory that
// nobody can watch. So Settle's writers touch their queue file after each commit, and that is what wakes.
// The log is watched too, for writers that do not know the queue; a wake-up from it comes a little early.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "settle/environment.hpp"
#include "settle/wakeup.hpp"

namespace settle::inline v0::sqlite {

// For files that no other process can see: sleeps out its time, or until it is stopped.
class nothing_to_watch final : public wakeup {
 public:
  void wait(duration at_most, std::stop_token stop) override;

 private:
  std::mutex mutex_;
  std::condition_variable_any never_;
};

class wal_watch final : public wakeup {
 public:
  wal_watch(const std::string& database_path, const environment& env);
  ~wal_watch() override;
  wal_watch(const wal_watch&) = delete;
  wal_watch& operator=(const wal_watch&) = delete;

  void wait(duration at_most, std::stop_token stop) override;

 private:
  struct news {
    bool committed = false;  // somebody touched the queue file
    bool written = false;    // somebody wrote the log
  };

  bool open();  // false: the kernel has none for us
  void watch(const std::string& path, int& descriptor);
  bool poll(duration at_most);
  news drain();

  std::string wal_path_;
  std::string queue_path_;
  int inotify_ = -1;
  int stop_ = -1;
  int wal_ = -1;
  int queue_ = -1;
  nothing_to_watch asleep_;  // without descriptors
  environment env_;
  bool reported_ = false;
};

}  // namespace settle::inline v0::sqlite

// Sleeps until the write-ahead log of a database has been written to, by this process or another.
#pragma once

#include <string>

#include "settle/wakeup.hpp"

namespace settle::sqlite {

class wal_watch final : public wakeup {
 public:
  explicit wal_watch(const std::string& database_path);
  ~wal_watch() override;
  wal_watch(const wal_watch&) = delete;
  wal_watch& operator=(const wal_watch&) = delete;

  void wait(duration at_most, std::stop_token stop) override;

 private:
  void watch();
  void drain();

  std::string wal_path_;
  int inotify_ = -1;
  int stop_ = -1;
  int watched_ = -1;
};

}  // namespace settle::sqlite

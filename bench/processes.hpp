// Child processes of a bench: the same program, started again with --role.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace bench {

// Killed and collected at the end of its scope unless it was waited for.
class child {
 public:
  explicit child(std::vector<std::string> role);
  ~child();
  child(child&& other) noexcept;
  child& operator=(child&&) = delete;

  void stop();  // SIGTERM, then wait
  pid_t pid() const { return pid_; }
  void wait();  // until it ends by itself; throws unless its status was 0

 private:
  pid_t pid_;
};

// Returns when SIGTERM has come. To be called first in a child, before it starts threads.
class stop_signal {
 public:
  stop_signal();
  void wait() const;
};

// Numbers that processes share through a mapped file; all zero at first.
class shared_numbers {
 public:
  shared_numbers(const std::filesystem::path& file, std::size_t count);
  ~shared_numbers();
  shared_numbers(const shared_numbers&) = delete;
  shared_numbers& operator=(const shared_numbers&) = delete;

  std::atomic<std::int64_t>& operator[](std::size_t index) { return numbers_[index]; }

 private:
  std::span<std::atomic<std::int64_t>> numbers_;
};

}  // namespace bench

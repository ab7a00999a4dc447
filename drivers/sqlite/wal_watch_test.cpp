#include "sqlite/wal_watch.hpp"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "settle/sqlite.hpp"
#include "support/child_process.hpp"
#include "support/quiet_log.hpp"
#include "support/temp_dir.hpp"

namespace settle::sqlite {
namespace {

using namespace std::chrono_literals;

auto open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

// As a user of its own, so that nobody else on this machine lacks what this test uses up.
bool is_nobody_else() { return ::setgid(54'321) == 0 && ::setuid(54'321) == 0; }

std::vector<int> all_inotify_instances() {
  std::vector<int> all;
  while ((all.emplace_back(::inotify_init1(IN_CLOEXEC))) >= 0) {
  }
  all.pop_back();
  return all;
}

enum verdict { good, leaks, hurries, talks, stays_blind };

verdict wait_without_inotify(const std::string& path) {
  test::quiet_log log;
  const auto db = open(path, {.env = {.log = &log}});
  const auto arrivals = db->watch();
  if (!is_nobody_else()) return good;
  const auto taken = all_inotify_instances();
  arrivals->wait(1ms, {});
  const auto files = open_files();
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i) arrivals->wait(1ms, {});
  if (std::chrono::steady_clock::now() - begun < 50ms) return hurries;
  if (open_files() != files) return leaks;
  if (log.count("wakeups_unavailable") != 1) return talks;
  for (const int one : taken) ::close(one);
  arrivals->wait(1ms, {});  // begins to watch
  return open_files() == files - static_cast<std::ptrdiff_t>(taken.size()) + 1 ? good : stays_blind;
}

int instances_max() {
  int limit = 0;
  std::ifstream("/proc/sys/fs/inotify/max_user_instances") >> limit;
  return limit;
}

// Proves O3
TEST(wal_watch, without_inotify_it_sleeps_out_its_time_and_leaks_nothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become somebody who has used up all instances";
  if (instances_max() > 500) GTEST_SKIP() << "there are more instances than files that a process may open";
  const test::temp_dir dir;
  test::child_process child([&] { return wait_without_inotify(dir.file("a.db")); });
  EXPECT_EQ(child.wait(), good);
}

}  // namespace
}  // namespace settle::sqlite

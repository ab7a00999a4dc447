// The command line as a user meets it: the real program in a folder of its own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "support/daemon_process.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {

// A folder of its own as working directory, and the program in it.
class cli_program : public testing::Test {
 protected:
  // Starts the program; its output goes to <name>.out and <name>.err.
  pid_t start(const std::vector<std::string>& arguments, const std::string& name) {
    return start(arguments, dir.file(name + ".out"), dir.file(name + ".err"));
  }

  pid_t start(const std::vector<std::string>& arguments, const std::string& out, const std::string& err) {
    std::vector<std::string> all{SETTLE_CLI, "--data", data()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& one : all) argv.push_back(one.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    const auto in = std::filesystem::exists(stdin_path()) ? stdin_path() : std::string("/dev/null");
    posix_spawn_file_actions_addopen(&files, 0, in.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = -1;
    const int failed = posix_spawn(&child, SETTLE_CLI, &files, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    EXPECT_EQ(failed, 0);
    return child;
  }

  outcome end_of(pid_t child, const std::string& name) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            content_of(dir.file(name + ".out")), content_of(dir.file(name + ".err"))};
  }

  outcome settle(const std::vector<std::string>& arguments) {
    return end_of(start(arguments, "call"), "call");
  }

  // With standard output where nothing can be written.
  outcome settle_unheard(const std::vector<std::string>& arguments) {
    auto done = end_of(start(arguments, "/dev/full", dir.file("call.err")), "call");
    done.out.clear();
    return done;
  }

  outcome settle_with_input(const std::string& input, const std::vector<std::string>& arguments) {
    write_file(stdin_path(), input);
    auto done = settle(arguments);
    std::filesystem::remove(stdin_path());
    return done;
  }

  boost::json::value settle_json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const auto done = settle(arguments);
    EXPECT_EQ(done.code, 0) << done.err;
    return boost::json::parse(done.out);
  }

  // Waits until the output of a running program has as many lines: its only sign of life.
  bool has_lines(const std::string& name, std::ptrdiff_t count) {
    for (int i = 0; i < 1000; ++i) {
      const auto out = content_of(dir.file(name + ".out"));
      if (std::count(out.begin(), out.end(), '\n') >= count) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  std::string data() const { return dir.file("data"); }
  std::string stdin_path() const { return dir.file("stdin"); }

  test::temp_dir dir;
};

inline void expect_json_error(const outcome& done, std::string_view code, bool retryable) {
  EXPECT_EQ(done.out, "");
  const auto about = boost::json::parse(done.err).at("error");
  EXPECT_EQ(about.at("code").as_string(), code) << done.err;
  EXPECT_EQ(about.at("retryable").as_bool(), retryable);
  EXPECT_FALSE(about.at("message").as_string().empty());
}

}  // namespace settle::test

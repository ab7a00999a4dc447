// A program under test as a real process, and an HTTP client of a few lines to ask it.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace settle::test {

constexpr auto patience =
    std::chrono::seconds(20);  // for machines under sanitizers; nothing waits for as long as this

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// Asks again and again until the answer is yes or patience ends.
template <class Question>
bool eventually(const Question& holds) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < end) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return holds();
}

class client {
 public:
  explicit client(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~client() { ::close(fd_); }
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  void send(const std::string& text) const {
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }

  // Everything until the server closes the connection.
  std::string rest() const {
    std::string all;
    char buffer[4096];
    for (ssize_t got; (got = ::recv(fd_, buffer, sizeof buffer, 0)) > 0;)
      all.append(buffer, static_cast<std::size_t>(got));
    return all;
  }

  bool connected() const { return connected_; }

 private:
  int fd_;
  bool connected_ = false;
};

struct answer {
  int status = 0;
  std::string head;
  std::string body;
};

inline answer answer_in(const std::string& all) {
  const auto end = all.find("\r\n\r\n");
  if (all.size() < 12 || end == std::string::npos) return {};
  return {std::stoi(all.substr(9, 3)), all.substr(0, end), all.substr(end + 4)};
}

inline answer request(int port, const std::string& line, const std::string& headers = "") {
  const client to(port);
  if (!to.connected()) return {};
  to.send(line + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n" + headers + "\r\n");
  return answer_in(to.rest());
}

inline answer get(int port, const std::string& path) { return request(port, "GET " + path); }

inline answer post(int port, const std::string& path, const std::string& headers, const std::string& body) {
  const client to(port);
  if (!to.connected()) return {};
  to.send("POST " + path + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body);
  return answer_in(to.rest());
}

struct outcome {
  int code = -1;
  std::string out;
  std::string err;
};

struct surroundings {
  std::vector<std::string> variables = {};  // NAME=value, beside PATH
  uid_t as = 0;                             // 0: as the test itself
};

// A program with its output in files; killed at the end if it still runs.
class program {
 public:
  program(const std::string& path, std::vector<std::string> arguments, const std::string& output,
          const surroundings& in)
      : output_(output) {
    arguments.insert(arguments.begin(), path);
    auto variables = in.variables;
    const auto sets_path = [](const std::string& one) { return one.starts_with("PATH="); };
    if (std::ranges::none_of(variables, sets_path)) variables.emplace_back("PATH=/usr/bin:/bin");
    const auto argv = pointers(arguments);
    const auto envp = pointers(variables);
    const int out = ::open((output + ".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const int err = ::open((output + ".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out, 1);
      ::dup2(err, 2);
      const bool changed = in.as == 0 || (::setgid(in.as) == 0 && ::setuid(in.as) == 0);
      if (changed) ::execve(path.c_str(), argv.data(), envp.data());
      ::_exit(127);
    }
    ::close(out);
    ::close(err);
  }
  ~program() {
    if (pid_ > 0) end(SIGKILL);
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  outcome end(int signal = 0) {
    if (signal != 0) ::kill(pid_, signal);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(output_ + ".out"),
            content_of(output_ + ".err")};
  }

  std::string log() const { return content_of(output_ + ".err"); }
  bool logs(const std::string& text) const {
    return eventually([&] { return log().find(text) != std::string::npos; });
  }
  pid_t pid() const { return pid_; }

  // Where it listens, as its log says. Without std::regex: threads ask for it, and libstdc++ fills a table of
  // the locale there without a lock.
  int port() const {
    EXPECT_TRUE(logs(" info started ")) << log();
    constexpr std::string_view before = "listen=127.0.0.1:";
    const auto text = log();
    const auto found = text.find(before);
    return found == std::string::npos ? 0 : std::atoi(text.c_str() + found + before.size());
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (auto& one : texts) all.push_back(one.data());
    all.push_back(nullptr);
    return all;
  }

  std::string output_;
  pid_t pid_ = -1;
};

}  // namespace settle::test

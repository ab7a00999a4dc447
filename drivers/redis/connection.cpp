#include "redis/connection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "redis/answers.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::redis {
namespace {

timeval as_timeval(duration of) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(of);
  return {whole.count(), (of - whole).count()};
}

struct free_reply {
  void operator()(void* answer) const noexcept { freeReplyObject(answer); }
};

// A command as it goes over the line.
class encoded {
 public:
  explicit encoded(std::span<const std::string_view> words) {
    std::vector<const char*> pointers;
    std::vector<std::size_t> lengths;
    for (const auto word : words) {
      pointers.push_back(word.data());
      lengths.push_back(word.size());
    }
    size_ = redisFormatCommandArgv(&bytes_, static_cast<int>(words.size()), pointers.data(), lengths.data());
    if (size_ < 0) throw error(errc::store_unavailable, "no memory for a command");
  }
  ~encoded() { redisFreeCommand(bytes_); }
  encoded(const encoded&) = delete;
  encoded& operator=(const encoded&) = delete;
  std::string_view bytes() const { return {bytes_, static_cast<std::size_t>(size_)}; }

 private:
  char* bytes_ = nullptr;
  int size_ = 0;
};

}  // namespace

redis_connection::redis_connection(const address& to, const options& with) : to_(to) {
  open_.reset(redisConnectWithTimeout(to.host.c_str(), to.port, as_timeval(with.connect_timeout)));
  if (!open_ || open_->err != 0)
    throw error(errc::store_unavailable,
                fmt::format("cannot connect to {}: {}", to.name(), open_ ? open_->errstr : "out of memory"));
  redisSetTimeout(open_.get(), as_timeval(with.command_timeout));
  redisEnableKeepAlive(open_.get());
  try {
    const auto ask = [&](std::initializer_list<std::string_view> words) {
      return run(std::span<const std::string_view>(words.begin(), words.size()));
    };
    if (!to.user.empty())
      ask({"AUTH", to.user, to.password});
    else if (!to.password.empty())
      ask({"AUTH", to.password});
    if (to.database != 0) ask({"SELECT", std::to_string(to.database)});
    if (!with.accept_forgetful_server) check_settings();
  } catch (const error& e) {
    // None of this has an effect that could be in doubt.
    if (!e.outcome_unknown()) throw;
    throw error(errc::store_unavailable,
                fmt::format("{} has ended the connection while it was set up", to.name()));
  }
}

// INFO rather than CONFIG GET, which hosted servers forbid. Of those it stays unknown how they sync.
void redis_connection::check_settings() {
  const auto refuse = [&](std::string_view setting, std::string_view so, std::string_view better) {
    throw error(
        errc::invalid_argument,
        fmt::format("{} has {}, so {}; set it to {} (a program may say accept_forgetful_server instead)",
                    to_.name(), setting, so, better));
  };
  const std::string_view memory[] = {"INFO", "memory"};
  const std::string_view persistence[] = {"INFO", "persistence"};
  const auto used = run(memory).text;
  const auto policy = info_field(used, "maxmemory_policy");
  if (policy != "noeviction")
    refuse(fmt::format("maxmemory-policy {}", policy), "it may forget keys at any time", "noeviction");
  if (info_field(run(persistence).text, "aof_enabled") != "1")
    refuse("appendonly no", "a restart forgets", "yes");
  if (how_it_syncs() == "no")
    refuse("appendfsync no", "a crash of its machine forgets more than a second", "everysec or always");
}

// Empty if the server does not tell.
std::string redis_connection::how_it_syncs() try {
  const std::string_view words[] = {"CONFIG", "GET", "appendfsync"};
  const auto told = run(words);
  return told.items.size() == 2 ? told.items[1].text : "";
} catch (const error&) {
  if (broken_) throw;
  return {};
}

// Not hiredis' own writing: that raises SIGPIPE. A command that was not sent whole does not run.
void redis_connection::send(std::span<const std::string_view> words) {
  const encoded command(words);
  for (auto left = command.bytes(); !left.empty();) {
    const auto sent = ::send(open_->fd, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      broken_ = true;
      throw error(errc::store_unavailable,
                  fmt::format("{} on {} was not sent: {}", words[0], to_.name(), std::strerror(errno)));
    }
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
}

reply redis_connection::run(std::span<const std::string_view> words) {
  send(words);
  void* raw = nullptr;
  if (redisGetReply(open_.get(), &raw) != REDIS_OK) {
    broken_ = true;
    throw error::with_unknown_outcome(
        errc::store_unavailable, fmt::format("{} on {}: no answer: {}", words[0], to_.name(), open_->errstr));
  }
  const std::unique_ptr<void, free_reply> answer(raw);
  const auto& said = *static_cast<redisReply*>(raw);
  if (leads_elsewhere(said)) broken_ = true;
  return read_answer(said, words[0], to_.name());
}

std::string redis_connection::load(const script& what) {
  const std::string_view words[] = {"SCRIPT", "LOAD", what.source()};
  return loaded_[what.source()] = run(words).text;
}

reply redis_connection::run(const script& what, std::span<const std::string> keys,
                            std::span<const std::string> values) {
  const auto known = loaded_.find(what.source());
  auto hash = known != loaded_.end() ? known->second : load(what);
  const auto count = std::to_string(keys.size());
  std::vector<std::string_view> words{"EVALSHA", hash, count};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), values.begin(), values.end());
  try {
    return run(words);
  } catch (const script_missing&) {
    // The server was restarted or told to forget; it has not begun to run anything.
    hash = load(what);
    words[1] = hash;
    return run(words);
  }
}

bool redis_connection::usable() const noexcept {
  if (broken_) return false;
  pollfd line{open_->fd, POLLIN, 0};
  return ::poll(&line, 1, 0) == 0;  // what comes unasked is a farewell
}

}  // namespace settle::inline v0::redis

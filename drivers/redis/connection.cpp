#include "redis/connection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/time.h>

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

// The words as hiredis wants them.
struct command {
  explicit command(std::span<const std::string_view> words) {
    for (const auto word : words) {
      pointers.push_back(word.data());
      lengths.push_back(word.size());
    }
  }
  std::vector<const char*> pointers;
  std::vector<std::size_t> lengths;
};

}  // namespace

redis_connection::redis_connection(const address& to, const options& with) : to_(to) {
  open_.reset(redisConnectWithTimeout(to.host.c_str(), to.port, as_timeval(with.connect_timeout)));
  if (!open_ || open_->err != 0)
    throw error(errc::store_unavailable,
                fmt::format("cannot connect to {}: {}", to.name(), open_ ? open_->errstr : "out of memory"));
  redisSetTimeout(open_.get(), as_timeval(with.command_timeout));
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
    // None of this has an effect that could be in doubt. The code stays; the text has it already.
    if (!e.outcome_unknown()) throw;
    throw error(errc::store_unavailable,
                fmt::format("{} has ended the connection while it was set up", to.name()));
  }
}

// INFO rather than CONFIG GET, which hosted servers forbid.
void redis_connection::check_settings() {
  const std::string_view words[] = {"INFO", "memory"};
  const auto memory = run(words).text;
  const auto policy = info_field(memory, "maxmemory_policy");
  if (policy != "noeviction")
    throw error(
        errc::invalid_argument,
        fmt::format("{} has maxmemory-policy {}, so it may forget keys at any time; set it to noeviction, or "
                    "say accept_forgetful_server",
                    to_.name(), policy));
  const std::string_view persistence[] = {"INFO", "persistence"};
  if (info_field(run(persistence).text, "aof_enabled") != "1")
    throw error(errc::invalid_argument,
                fmt::format("{} has appendonly no, so a restart forgets; set it to yes, or say "
                            "accept_forgetful_server",
                            to_.name()));
}

void redis_connection::throw_lost(std::string_view command, bool sent) {
  const auto why = fmt::format("{} on {}: {}", command, to_.name(), open_->errstr);
  if (sent) throw error::with_unknown_outcome(errc::store_unavailable, why);
  throw error(errc::store_unavailable, why);
}

reply redis_connection::run(std::span<const std::string_view> words) {
  const command as(words);
  auto* const line = open_.get();
  if (redisAppendCommandArgv(line, static_cast<int>(words.size()),
                             const_cast<const char**>(as.pointers.data()), as.lengths.data()) != REDIS_OK)
    throw_lost(words[0], false);
  for (int done = 0; done == 0;)
    if (redisBufferWrite(line, &done) != REDIS_OK) throw_lost(words[0], true);
  void* raw = nullptr;
  if (redisGetReply(line, &raw) != REDIS_OK) throw_lost(words[0], true);
  const std::unique_ptr<void, free_reply> answer(raw);
  return read_answer(*static_cast<redisReply*>(raw), words[0], to_.name());
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
  if (open_->err != 0) return false;
  pollfd line{open_->fd, POLLIN, 0};
  return ::poll(&line, 1, 0) == 0;  // what comes unasked is a farewell
}

}  // namespace settle::inline v0::redis

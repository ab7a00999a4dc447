// Members of scopes that are alive: a session of its own holds an advisory lock for each.
#pragma once

#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "postgres/session.hpp"
#include "settle/postgres.hpp"
#include "sql/presence.hpp"

namespace settle::inline v0::postgres {

// Connects when the first member is shown, and closes with the last. When the process ends its socket closes,
// and the server drops the session with its locks. Where a machine has lost its power or its network, the
// server learns that late, and the leases decide.
class member_session {
 public:
  // Both must outlive it, and it the members that it shows.
  member_session(const settings& to, const options& with) : to_(to), with_(with) {}

  // Nothing behind a pooler in transaction mode: there is no session of one's own.
  std::unique_ptr<sql::presence> show(const std::string& member);
  std::vector<std::string> gone_of(std::span<const std::string> members);

  static constexpr std::string_view mark = "@session";

 private:
  class shown_member;

  result run(std::string_view sql, const value& with);
  bool connect_if_needed();
  bool alive();
  void hide(const std::string& member) noexcept;
  bool shows(const std::string& member);
  void lose(const char* what, const std::exception& why) noexcept;

  const settings& to_;
  const options& with_;
  std::mutex mutex_;  // guards what is below
  poller wait_;
  handle conn_;
  std::set<std::string> shown_;  // on this very connection
  bool pooled_ = false;
};

}  // namespace settle::inline v0::postgres

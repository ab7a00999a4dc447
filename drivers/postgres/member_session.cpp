#include "postgres/member_session.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "postgres/decode.hpp"
#include "postgres/exchange.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::postgres {
namespace {

using namespace std::chrono_literals;

constexpr duration answer_limit = 5s;   // a server under load, not one that is away
constexpr duration connect_limit = 2s;  // its caller is about to connect anyway, and waits for that longer

// Whoever asks whether a member is gone holds its lock for the moment of the question, so this may wait for
// it.
constexpr auto show_sql =
    "select pg_backend_pid() from (select pg_advisory_lock(hashtextextended('settle.member.' || $1::text, "
    "0))) "
    "taken";
constexpr auto hide_sql = "select pg_advisory_unlock(hashtextextended('settle.member.' || $1::text, 0))";
// Shared, so that two who ask do not take each other for the member.
constexpr auto gone_sql =
    "select m from jsonb_array_elements_text($1::jsonb) m "
    "where pg_try_advisory_xact_lock_shared(hashtextextended('settle.member.' || m, 0))";

}  // namespace

class member_session::shown_member final : public sql::presence {
 public:
  shown_member(member_session& by, std::string member) : by_(by), member_(std::move(member)) {}
  ~shown_member() override { by_.hide(member_); }
  bool lasts() override { return by_.shows(member_); }

 private:
  member_session& by_;
  std::string member_;
};

result member_session::run(std::string_view sql, const value& with) {
  const limit within{steady::now() + answer_limit, {}};
  pipeline line(conn_.get(), wait_);
  line.run(sql, {&with, 1});
  check_statements(round_trip(conn_.get(), line, within), line, to_.name);
  return read_result(line.steps().back().answer.get());
}

// A server that has ended the session says so, or closes the line; nothing else comes unasked.
bool member_session::alive() {
  if (conn_ && (PQconsumeInput(conn_.get()) == 0 || PQstatus(conn_.get()) != CONNECTION_OK)) {
    close_now(conn_);
    shown_.clear();
  }
  return conn_ != nullptr;
}

bool member_session::connect_if_needed() {
  if (pooled_ || !with_.prepared_statements) return false;
  if (alive()) return true;
  conn_ =
      connect(to_, {steady::now() + std::min(with_.connect_timeout, connect_limit), {}}, wait_, with_.env);
  return true;
}

void member_session::lose(const char* what, const std::exception& why) noexcept {
  close_now(conn_);
  shown_.clear();
  with_.env.log->write(log_level::debug, "postgres_members_session_lost",
                       {{"database", to_.name}, {"while", what}, {"error", why.what()}});
}

std::unique_ptr<sql::presence> member_session::show(const std::string& member) {
  const std::scoped_lock lock(mutex_);
  try {
    if (!connect_if_needed()) return nullptr;
    const auto backend = run(show_sql, value(member))[0][0].integer();
    if (backend != PQbackendPID(conn_.get())) {  // a pooler is between us
      pooled_ = true;
      run(hide_sql, value(member));
      close_now(conn_);
      return nullptr;
    }
    shown_.insert(member);
    return std::make_unique<shown_member>(*this, member);
  } catch (const error& e) {
    lose("showing a member", e);
    return nullptr;
  }
}

bool member_session::shows(const std::string& member) {
  const std::scoped_lock lock(mutex_);
  return alive() && shown_.contains(member);
}

void member_session::hide(const std::string& member) noexcept {
  const std::scoped_lock lock(mutex_);
  if (shown_.erase(member) == 0 || !conn_) return;
  if (shown_.empty()) {
    close_now(conn_);
    return;
  }
  try {
    run(hide_sql, value(member));
  } catch (const std::exception& e) {
    lose("hiding a member", e);
  }
}

// A session does not get into its own way, so members of this one are not asked about.
std::vector<std::string> member_session::gone_of(std::span<const std::string> members) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> gone;
  json_array asked;
  bool any = false;
  for (const auto& one : members)
    if (one.ends_with(mark) && !shown_.contains(one)) {
      asked.add(one);
      any = true;
    }
  if (!any) return gone;
  try {
    if (!connect_if_needed()) return gone;
    const auto found = run(gone_sql, value(asked.text()));
    for (std::size_t n = 0; n < found.size(); ++n) gone.push_back(found[n][0].text());
  } catch (const error& e) {
    lose("asking for members", e);
  }
  return gone;
}

}  // namespace settle::inline v0::postgres

#include "postgres/connection.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "base/hash.hpp"
#include "postgres/decode.hpp"
#include "postgres/sql_text.hpp"
#include "postgres/sqlstate.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::postgres {
namespace {

// Levels are stated, because a role or a server may have another default. Whether writing is allowed is
// left to the server: an administrator who set default_transaction_read_only meant it.
constexpr query begin_writing{"begin_write", "", "begin isolation level read committed"};
constexpr query begin_reading{"begin_read", "", "begin isolation level repeatable read read only"};
// These are never prepared: EXECUTE runs whatever has a name, and nothing sees from its text that it would
// end the transaction.
constexpr std::string_view commit_all = "commit";
constexpr std::string_view roll_back = "rollback";

// The first statement of a session. $1 is the lock_timeout in milliseconds, or null to leave it alone. The
// timeline is that of the next write; the control file may lag behind a promotion.
constexpr std::string_view greet =
    "select set_config('lock_timeout', coalesce($1, current_setting('lock_timeout')), $1 is null),"
    " pg_is_in_recovery(), (select system_identifier from pg_control_system()),"
    " case when pg_is_in_recovery() then (select timeline_id from pg_control_checkpoint())"
    " else ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int end";
// The same where the administrator has closed the control file to us.
constexpr std::string_view greet_briefly =
    "select set_config('lock_timeout', coalesce($1, current_setting('lock_timeout')), $1 is null),"
    " pg_is_in_recovery()";

// A client whose host has vanished inside of a transaction keeps its locks, and holds up the relays of its
// outbox, for as long as the server takes the line for whole; by the kernel's defaults that is two hours.
// Here it is 20 s, or less where the server has been told so: keepalives notice it if all was acknowledged,
// the user timeout if an answer was not. Over a Unix socket the server ignores them.
constexpr std::string_view watch_line =
    "select set_config(name, least(nullif(current_setting(name)::bigint, 0), most)::text, false) from (values"
    " ('tcp_keepalives_idle', 10), ('tcp_keepalives_interval', 5), ('tcp_keepalives_count', 2),"
    " ('tcp_user_timeout', 20000)) as ours (name, most)";

constexpr int server_version_min = 140000;      // xid8, and pipelines that PostgreSQL itself tests
constexpr std::size_t queued_max = 256;         // statements per round trip, and posted ones that wait for it
constexpr std::size_t posted_bytes_max = 8192;  // then they are sent, and the server has something to do
constexpr std::size_t statement_bytes = 64;     // of the protocol, about
constexpr duration rollback_limit = std::chrono::seconds(5);

}  // namespace

postgres_connection::postgres_connection(const settings& to, const options& with,
                                         const std::function<void()>& committed,
                                         const std::stop_token& cancel)
    : to_(to), with_(with), committed_(committed) {
  const limit within{steady::now() + with.connect_timeout, cancel};
  conn_ = connect(to, within, wait_, with.env);
  pipeline_.emplace(conn_.get(), wait_);
  set_up(within);
}

postgres_connection::~postgres_connection() { rollback(); }

void postgres_connection::set_up(const limit& within) {
  if (PQserverVersion(conn_.get()) < server_version_min)
    throw error(errc::invalid_argument,
                fmt::format("{} runs PostgreSQL {}; 14 is the oldest that will do", to_.name,
                            PQparameterStatus(conn_.get(), "server_version")));
  if (!read_identity(greet, within)) read_identity(greet_briefly, within);
}

// False if the server does not let us see it.
bool postgres_connection::read_identity(std::string_view sql, const limit& within) {
  // A pooler in transaction mode hands sessions around, so nothing may be left in one.
  const auto wait_ms = std::chrono::duration_cast<std::chrono::milliseconds>(with_.busy_timeout).count();
  const value lock_timeout = with_.prepared_statements ? value(std::to_string(wait_ms)) : value();
  if (with_.prepared_statements) pipeline_->run(watch_line, {});
  pipeline_->run(sql, {&lock_timeout, 1});
  const auto of = round_trip(conn_.get(), *pipeline_, within);
  const auto& answer = pipeline_->steps().back().answer;
  const bool forbidden =
      of.how == ending::complete && failed(answer.get()) && read_failure(answer.get()).sqlstate == "42501";
  if (!forbidden) {
    check_statements(of, *pipeline_, to_.name);
    const auto row = read_result(answer.get());
    standby_ = row[0][1].integer() != 0;
    if (sql == greet) identity_ = {row[0][2].integer(), row[0][3].integer(), standby_};
  }
  pipeline_->clear();
  return !forbidden;
}

void postgres_connection::begin_write(std::stop_token cancel) {
  if (standby_) {
    outdated_ = true;  // the next one may find the primary, or this server promoted
    throw error(errc::store_unavailable,
                fmt::format("{} is a standby and takes no writes: connect to the primary "
                            "(target_session_attrs=read-write), or promote it",
                            to_.name));
  }
  if (cancel.stop_requested()) throw error(errc::cancelled, "stopped before the transaction began");
  cancel_ = std::move(cancel);
  reading_ = false;
  phase_ = phase::wanted;
}

void postgres_connection::begin_read() {
  reading_ = true;
  phase_ = phase::wanted;
}

limit postgres_connection::statement_limit() const {
  return {steady::now() + with_.statement_timeout, cancel_};
}

// Once a commit is under way nobody may stop it: whoever waits learns how it ended.
limit postgres_connection::commit_limit() const { return {steady::now() + with_.statement_timeout, {}}; }

namespace {

void check_text(const query& of) {
  if (of.postgres.empty())
    throw error(errc::statement_failed, fmt::format("'{}' has no text for PostgreSQL", of.name));
}

}  // namespace

// Refuses anything in a transaction that has ended or failed: after a silent rollback it would commit alone.
void postgres_connection::check_usable(bool to_savepoint) const {
  if (cancel_.stop_requested()) throw error(errc::cancelled, "stopped inside a transaction");
  if (!conn_) throw error(errc::transaction_lost, "the connection was lost earlier in this transaction");
  const bool failed_before = pipeline_->empty() && PQtransactionStatus(conn_.get()) == PQTRANS_INERROR;
  if (failed_before && !to_savepoint)
    throw error(errc::transaction_lost,
                "an earlier statement has failed, and PostgreSQL takes nothing more in this transaction");
}

// The same, and what would end the transaction, or undo or forbid what others do in it.
void postgres_connection::check_allowed(std::string_view sql) {
  if (!concerns_transaction(sql)) return check_usable();
  check_usable(returns_to_savepoint(sql));
  if (controls_transaction(sql) || (phase_ == phase::begun && sets_transaction(sql)))
    throw error(errc::transaction_control, fmt::format("'{}' is not for statements to say", sql));
  if (const auto step = savepoint_step_of(sql)) savepoints_.apply(*step);
}

void postgres_connection::check_allowed(std::span<const repeated> all) {
  for (const auto& [text, rows] : all)
    if (!rows.empty()) check_allowed(text.postgres);
}

// The same for who wants to go on or to commit, and has not seen the error. If the store was to blame, it
// still is: not to be charged to whoever has ignored it.
void postgres_connection::check_unspoiled() const {
  const bool spoiled = !conn_ || (pipeline_->empty() && PQtransactionStatus(conn_.get()) == PQTRANS_INERROR);
  if (spoiled && trouble_)
    throw error(*trouble_,
                fmt::format("a statement on {} failed earlier in this transaction, and its error was "
                            "ignored; nothing was committed",
                            to_.name));
  check_usable();
}

void postgres_connection::end_part() {
  check_unspoiled();
  savepoints_.end_part();
  if (posted_bytes_ >= posted_bytes_max) queue_posted();
  part_ = {posted_.size(), posted_bytes_, false};
}

bool postgres_connection::drop_part() noexcept {
  if (part_.sent || !conn_) return false;
  posted_.erase(posted_.begin() + static_cast<std::ptrdiff_t>(part_.first), posted_.end());
  posted_bytes_ = part_.first_byte;
  savepoints_.end_part();
  return true;
}

void postgres_connection::queue(const query& text, std::span<const value> values) {
  const auto sql = text.postgres;
  check_text(text);
  if (!with_.prepared_statements) return pipeline_->run_as_typed(sql, values);
  auto found = prepared_.find(sql);
  if (found == prepared_.end()) {
    const std::string_view kept = texts_.emplace_back(sql);
    auto name = fmt::format("settle_{}_{:016x}", text.name.substr(0, 32), stable_hash(sql));
    pipeline_->prepare(name, kept);
    found = prepared_.emplace(kept, std::move(name)).first;
  }
  pipeline_->run_prepared(found->second, found->first, values);
}

void postgres_connection::begin_if_wanted() {
  if (phase_ != phase::wanted) return;
  queue(reading_ ? begin_reading : begin_writing, {});
  phase_ = phase::begun;
}

// What was posted goes first. From here on the caller at work has asked something that cannot be taken back.
void postgres_connection::begin_exchange() {
  begin_if_wanted();
  queue_posted();
  part_.sent = true;
}

// What every exchange leaves behind, before anybody looks whether it went well.
void postgres_connection::settle_exchange(const outcome& of) {
  for (const auto& step : pipeline_->steps()) {
    const bool ok = step.answer && PQresultStatus(step.answer.get()) == PGRES_COMMAND_OK;
    if (!step.preparing.empty() && !ok) prepared_.erase(step.what);
    if (step.answer && failed(step.answer.get()) && read_failure(step.answer.get()).session_outdated)
      outdated_ = true;
  }
  if (of.how != ending::complete) close_now(conn_);
}

void postgres_connection::finish(const limit& within) {
  const auto of = round_trip(conn_.get(), *pipeline_, within);
  settle_exchange(of);
  try {
    check_statements(of, *pipeline_, to_.name);
  } catch (const error& e) {
    trouble_ = e.retryable() ? std::optional(e.code()) : std::nullopt;
    savepoints_.forget_unconfirmed();
    throw;
  }
  savepoints_.confirm();
  const auto status = PQtransactionStatus(conn_.get());
  if (status == PQTRANS_INTRANS) return;
  close_now(conn_);
  throw error(errc::transaction_lost, "the transaction has ended, though nobody here ended it");
}

namespace {

// Empties a pipeline at the end of a scope, so that a failed exchange does not linger.
struct clear_at_end {
  pipeline& of;
  ~clear_at_end() { of.clear(); }
};

}  // namespace

result postgres_connection::run_queued() {
  const clear_at_end guard{*pipeline_};
  finish(statement_limit());
  const auto& last = pipeline_->steps().back();
  if (PQresultStatus(last.answer.get()) == PGRES_EMPTY_QUERY)
    throw error(errc::statement_failed, fmt::format("the statement is empty: '{}'", last.what));
  return read_result(last.answer.get());
}

result postgres_connection::execute(const query& text, std::span<const value> values) {
  check_allowed(text.postgres);
  begin_exchange();
  queue(text, values);
  return run_queued();
}

result postgres_connection::execute(std::string_view sql, std::span<const value> values) {
  check_allowed(sql);
  begin_exchange();
  pipeline_->run(sql, values);
  return run_queued();
}

// What it refuses it refuses at once: later, somebody else would be blamed.
void postgres_connection::post(const query& text, std::span<const value> values) {
  check_allowed(text.postgres);
  check_text(text);
  checked_.assign(values);
  begin_if_wanted();
  posted_.push_back(
      {std::string(text.name), std::string(text.postgres), parameters(values.begin(), values.end())});
  posted_bytes_ += statement_bytes + checked_.bytes();
  if (posted_bytes_ - part_.first_byte >= posted_bytes_max) queue_posted();
  if (pipeline_->size() + posted_.size() < queued_max) return;
  queue_posted();
  run_queued();
}

// Goes before what is queued next.
void postgres_connection::queue_posted() {
  if (posted_.empty()) return;
  part_ = {0, 0, part_.sent || posted_.size() > part_.first};
  posted_bytes_ = 0;
  const auto all = std::exchange(posted_, {});
  for (const auto& one : all) queue({one.name, "", one.sql}, one.values);
  pipeline_->detach();  // before the texts are gone
}

std::vector<std::int64_t> postgres_connection::execute_many(const query& text,
                                                            std::span<const parameters> rows) {
  const repeated all{text, rows};
  std::vector<std::int64_t> affected;
  affected.reserve(rows.size());
  for (const auto& one : execute_all({&all, 1})) affected.push_back(one.affected());
  return affected;
}

// One of several whose values belong to the caller.
void postgres_connection::queue_or_detach(const query& text, std::span<const value> values) {
  try {
    queue(text, values);
  } catch (...) {
    pipeline_->detach();
    throw;
  }
}

std::vector<result> postgres_connection::execute_all(std::span<const repeated> all) {
  check_allowed(all);
  begin_exchange();
  std::vector<result> results;
  auto first = pipeline_->size();  // after BEGIN, and what was posted
  const auto collect = [&] {
    const clear_at_end guard{*pipeline_};
    finish(statement_limit());
    for (const auto& step : std::span(pipeline_->steps()).subspan(std::exchange(first, 0)))
      if (step.preparing.empty()) results.push_back(read_result(step.answer.get()));
  };
  for (const auto& [text, rows] : all) {
    for (const auto& row : rows) {
      queue_or_detach(text, row);
      if (pipeline_->size() >= queued_max) collect();
    }
  }
  if (pipeline_->size() > first) collect();
  return results;
}

// Without statement_timeout: building an index takes as long as it takes.
void postgres_connection::execute_script(std::string_view sql) {
  const auto statements = split_script(sql);
  for (const auto one : statements) check_allowed(one);
  begin_exchange();
  for (std::size_t done = 0; done < statements.size(); done += queued_max) {
    for (const auto one : std::span(statements).subspan(done, std::min(queued_max, statements.size() - done)))
      pipeline_->run(one, {});
    const clear_at_end guard{*pipeline_};
    finish({steady::time_point::max(), cancel_});
  }
}

void postgres_connection::end_transaction() noexcept {
  phase_ = phase::none;
  posted_.clear();
  posted_bytes_ = 0;
  part_ = {};
  savepoints_.clear();
  trouble_.reset();
  reading_ = false;
  wake_ = false;
  cancel_ = {};
}

// Before anything of the COMMIT is sent, nothing is in doubt.
void postgres_connection::check_line() {
  if (!pipeline_->empty() || silent()) return;
  close_now(conn_);
  throw error(errc::store_unavailable,
              fmt::format("{} has ended the session before the commit; nothing was committed", to_.name));
}

void postgres_connection::finish_commit() {
  check_line();
  queue_posted();
  pipeline_->run(commit_all, {});
  const clear_at_end guard{*pipeline_};
  const auto of = round_trip(conn_.get(), *pipeline_, commit_limit());
  settle_exchange(of);
  check_commit(of, *pipeline_, to_.name);
  if (!reading_) check_replicated(of, *pipeline_, to_.name);
}

// A statement that is the whole transaction needs neither BEGIN nor COMMIT, and may be stopped like every
// other.
std::vector<result> postgres_connection::execute_last(std::span<const repeated> all, bool may_be_alone) {
  std::size_t count = 0;
  for (const auto& one : all) count += one.rows.size();
  if (count == 0 || pipeline_->size() + posted_.size() + count >= queued_max)
    return connection::execute_last(all, may_be_alone);
  check_allowed(all);
  const bool alone = may_be_alone && phase_ == phase::wanted && count == 1;
  check_line();
  if (!alone) begin_if_wanted();
  phase_ = phase::begun;
  queue_posted();
  const auto first = pipeline_->size();
  for (const auto& [text, rows] : all)
    for (const auto& row : rows) queue_or_detach(text, row);
  const auto end = pipeline_->size();
  if (!alone) pipeline_->run(commit_all, {});
  const clear_at_end guard{*pipeline_};
  const auto of = round_trip(conn_.get(), *pipeline_, alone ? statement_limit() : commit_limit());
  settle_exchange(of);
  if (alone)
    check_alone(of, *pipeline_, to_.name);
  else
    check_commit(of, *pipeline_, to_.name);
  if (!reading_) check_replicated(of, *pipeline_, to_.name);
  std::vector<result> found;
  found.reserve(count);
  for (auto place = first; place < end; ++place)
    if (pipeline_->steps()[place].preparing.empty())
      found.push_back(keep_result(pipeline_->take_answer(place)));
  wake_and_end();
  return found;
}

void postgres_connection::commit() {
  check_unspoiled();
  if (phase_ == phase::begun) finish_commit();
  wake_and_end();
}

void postgres_connection::wake_and_end() {
  const bool wake = wake_ && phase_ == phase::begun;
  end_transaction();
  if (wake) committed_();
}

void postgres_connection::rollback() noexcept {
  const bool begun = phase_ == phase::begun;
  end_transaction();
  if (!begun || !conn_) return;
  try {
    const limit soon{steady::now() + rollback_limit, {}};
    const auto over = [&] { return !conn_ || PQtransactionStatus(conn_.get()) == PQTRANS_IDLE; };
    const bool posted = !pipeline_->empty();
    if (!posted && over()) return;
    // It goes with what was posted. If one of those fails, what comes after it does not run.
    for (int tries = posted ? 2 : 1; tries > 0; --tries) {
      pipeline_->run(roll_back, {});
      settle_exchange(round_trip(conn_.get(), *pipeline_, soon));
      pipeline_->clear();
      if (over()) return;
    }
  } catch (...) {
    close_now(conn_);  // the server rolls back what is left without a client
  }
}

// Nothing is expected on an idle line. What comes unasked is a farewell.
bool postgres_connection::silent() const noexcept {
  pollfd line{PQsocket(conn_.get()), POLLIN, 0};
  return ::poll(&line, 1, 0) == 0;
}

bool postgres_connection::reusable() noexcept {
  return conn_ && !outdated_ && pipeline_->empty() && PQstatus(conn_.get()) == CONNECTION_OK &&
         PQtransactionStatus(conn_.get()) == PQTRANS_IDLE && silent();
}

}  // namespace settle::inline v0::postgres

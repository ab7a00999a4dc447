#include "postgres/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "postgres/session.hpp"
#include "postgres/sql_text.hpp"
#include "postgres/sqlstate.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::postgres {
namespace {

// The first step that failed. libpq answers for a server that has gone silent, so not every failure is
// the server's word.
const pipeline::step* first_failure(const pipeline& done) {
  for (const auto& step : done.steps())
    if (step.answer && failed(step.answer.get())) return &step;
  return nullptr;
}

std::string describe(const pipeline::step& of) {
  return of.posted ? fmt::format("'{}', posted before,", of.what) : std::string(of.what);
}

std::string_view last_text(const pipeline& done) {
  return done.steps().empty() ? std::string_view("an exchange") : done.steps().back().what;
}

error no_answer(const outcome& of, const pipeline& done, std::string_view database) {
  const auto during = last_text(done);
  if (of.cause == ending::stopped)
    return {errc::cancelled, fmt::format("stopped during {}; the connection is closed", during)};
  if (of.cause == ending::timed_out)
    return {errc::store_unavailable,
            fmt::format("{} on {}: no answer within statement_timeout, nor to the request to cancel; the "
                        "connection is closed",
                        during, database)};
  return {errc::store_unavailable, fmt::format("{} on {}: the connection was lost", during, database)};
}

constexpr std::string_view query_cancelled = "57014";

// Some poolers take their leave with an ERROR; its class and the end of the line give them away.
server_failure failure_of(const outcome& of, const pipeline::step& step) {
  auto said = read_failure(step.answer.get());
  // If the caller names a prepared statement that is not there, here or in a function, that says nothing
  // about the session.
  const bool of_the_caller = said.in_function || names_prepared_statement(step.what);
  if ((said.sqlstate == "26000" || said.sqlstate == "42P05") && of_the_caller)
    said.code = errc::statement_failed;
  if (said.sqlstate.starts_with("08") && of.how != ending::complete) {
    said.session_ended = true;
    said.code = errc::store_unavailable;
  }
  return said;
}

error as_error(const outcome& of, const pipeline::step& step, std::string_view database) {
  const auto failure = failure_of(of, step);
  if (failure.sqlstate == query_cancelled && of.cause == ending::stopped)
    return {errc::cancelled, fmt::format("stopped during {}", describe(step))};
  if (failure.sqlstate == query_cancelled && of.cause == ending::timed_out)
    return {errc::store_busy, fmt::format("{} on {} took longer than statement_timeout and was cancelled",
                                          describe(step), database)};
  return failure.as_error(describe(step), database);
}

constexpr auto first_cancel_wait = std::chrono::milliseconds(50);

error unknown(const error& known) { return error::with_unknown_outcome(known.code(), known.what()); }

}  // namespace

outcome round_trip(PGconn* conn, pipeline& queued, const limit& within) {
  outcome of;
  of.how = queued.collect(within);
  if (of.how != ending::timed_out && of.how != ending::stopped) return of;
  of.cause = of.how;
  // A request that comes before its statement does nothing, so it is repeated.
  const auto until = steady::now() + cancel_grace;
  for (auto wait = first_cancel_wait;; wait *= 2) {
    if (!request_cancel(conn, cancel_grace)) return of;
    of.how = queued.collect({std::min(steady::now() + wait, until), {}});
    if (of.how != ending::timed_out || steady::now() >= until) return of;
  }
}

void check_statements(const outcome& of, const pipeline& done, std::string_view database) {
  const auto* failure = first_failure(done);
  if (failure != nullptr) throw as_error(of, *failure, database);
  for (const auto& step : done.steps())
    if (step.copies())
      throw error(
          errc::statement_failed,
          fmt::format("{} copies from or to the client, and the statements of a pipeline have no place "
                      "for the data; the connection is closed",
                      describe(step)));
  if (of.how != ending::complete) throw no_answer(of, done, database);
}

// The last step was to commit, and it was not seen to do so.
[[noreturn]] static void throw_uncommitted(const outcome& of, const pipeline& done,
                                           std::string_view database) {
  const auto* failure = first_failure(done);
  if (failure == nullptr) throw unknown(no_answer(of, done, database));
  const auto said = failure_of(of, *failure);
  const auto known = as_error(of, *failure, database);
  // Who ends the session may be a pooler that has lost the server, and with it the answers: its farewell is
  // the answer to the first step that has none, even if the last one was carried out.
  const bool goes_on = !said.sqlstate.empty() && !said.session_ended;
  // A step before the last failed, and the server said so: it never got there.
  const bool before = goes_on && failure != &done.steps().back();
  // The last one itself failed: it is rolled back.
  const bool refused = goes_on && !said.sqlstate.starts_with("08") && said.sqlstate != "40003";
  if (before || refused) throw known;
  throw unknown(known);
}

void check_commit(const outcome& of, const pipeline& done, std::string_view database) {
  const auto& commit = done.steps().back();
  if (!commit.answer || PQresultStatus(commit.answer.get()) != PGRES_COMMAND_OK)
    throw_uncommitted(of, done, database);
  if (std::string_view(PQcmdStatus(commit.answer.get())) != "COMMIT")
    throw error(errc::transaction_lost,
                fmt::format("{} has rolled the transaction back instead of committing it", database));
}

void check_alone(const outcome& of, const pipeline& done, std::string_view database) {
  // The server commits when it has read the end of the exchange, after its answer to the statement.
  if (of.how != ending::complete || first_failure(done) != nullptr) throw_uncommitted(of, done, database);
}

void check_replicated(const outcome& of, const pipeline& done, std::string_view database) {
  if (of.cause == ending::complete) return;
  const bool stopped = of.cause == ending::stopped;
  throw error::with_unknown_outcome(
      stopped ? errc::cancelled : errc::store_unavailable,
      fmt::format("{} on {} {}, and has committed all the same, perhaps without its synchronous standby",
                  last_text(done), database,
                  stopped ? "was to be stopped" : "took longer than statement_timeout and was cancelled"));
}

}  // namespace settle::inline v0::postgres

#include "isolation/runner.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace settle::isolation {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 2ms;  // whether a step that has not ended waits for a lock
constexpr auto patience = 30s;    // for a step that neither ends nor waits

std::string current_test() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return test == nullptr ? "" : fmt::format("{}.{}", test->test_suite_name(), test->name());
}

}  // namespace

runner::runner(const std::string& conninfo)
    : conninfo_(conninfo), control_(PQconnectdb(conninfo.c_str()), PQfinish) {
  if (PQstatus(control_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(control_.get()));
}

session& runner::add(const std::string& name) {
  sessions_.push_back(std::make_unique<session>(name, conninfo_));
  return *sessions_.back();
}

runner::schedule runner::first_schedule() const {
  schedule order;
  for (std::size_t who = 0; who < sessions_.size(); ++who)
    order.insert(order.end(), sessions_[who]->steps_.size(), who);
  return order;
}

runner::schedule runner::schedule_of(const std::string& names) const {
  schedule order;
  std::istringstream words(names);
  for (std::string word; words >> word;) {
    const auto found = std::ranges::find(sessions_, word, [](const auto& one) { return one->name(); });
    if (found == sessions_.end()) throw std::invalid_argument("SETTLE_SCHEDULE: there is no session " + word);
    order.push_back(static_cast<std::size_t>(found - sessions_.begin()));
  }
  if (!std::ranges::is_permutation(order, first_schedule()))
    throw std::invalid_argument("SETTLE_SCHEDULE: each session has to be named once per step");
  return order;
}

exploration runner::explore(const world& with) {
  exploration all;
  auto order = first_schedule();
  const char* only = std::getenv("SETTLE_SCHEDULE");
  if (only != nullptr) order = schedule_of(only);
  do {
    const auto now = run(order, with);
    if (!now.failure.empty()) {
      all.failure = describe(order, now.failure);
      return all;
    }
    if (now.impossible_at == 0) {
      ++all.ran;
      continue;
    }
    ++all.impossible;  // and so is whatever begins like it
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(now.impossible_at), order.end(), std::greater<>());
  } while (only == nullptr && std::ranges::next_permutation(order).found);
  return all;
}

std::string runner::describe(const schedule& order, const std::string& failure) const {
  std::string names;
  for (const auto who : order) names += (names.empty() ? "" : " ") + sessions_[who]->name();
  return fmt::format("{}\n  {}\nto run only this order: SETTLE_SCHEDULE='{}' {} --gtest_filter={}", failure,
                     fmt::join(trace_, "\n  "), names, program_invocation_name, current_test());
}

runner::outcome runner::run(const schedule& order, const world& with) {
  with.reset();
  trace_.clear();
  failed_step_.clear();
  waiting_.assign(sessions_.size(), {});
  for (const auto& one : sessions_) one->pause_again();
  std::size_t turn = 0;
  const bool possible = take_turns(order, turn);
  wind_up(!possible);
  if (!possible) return {{}, turn + 1};
  if (!failed_step_.empty()) return {failed_step_, 0};
  return {with.check(), 0};
}

// False if the session whose turn it is still waits for a lock.
bool runner::take_turns(const schedule& order, std::size_t& turn) {
  std::vector<std::size_t> taken(sessions_.size());
  for (turn = 0; turn < order.size(); ++turn) {
    const auto who = order[turn];
    auto& one = *sessions_[who];
    if (one.running()) return false;
    const auto& next = one.steps_[taken[who]++];
    trace_.push_back(fmt::format("{:10} {}", one.name(), next.what));
    waiting_[who] = {trace_.size() - 1, &next};
    one.start(next.run);
    await(who);
    collect();
  }
  return true;
}

// Until the session's step has ended, or waits for a lock.
void runner::await(std::size_t who) {
  auto& one = *sessions_[who];
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (!one.stands_within(look_every)) {
    if (waits_for_a_lock(one)) return;
    if (std::chrono::steady_clock::now() > give_up)
      throw std::runtime_error(
          fmt::format("{} neither ends its step nor waits for a lock:\n{}", one.name(), trace_.back()));
  }
  note_end(who);
}

// One that goes on may let another one go on.
void runner::collect() {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t who = 0; who < sessions_.size(); ++who) {
      if (waiting_[who].which == nullptr) continue;
      await(who);
      moved = moved || waiting_[who].which == nullptr;
    }
  }
}

void runner::note_end(std::size_t who) {
  const auto ended = std::exchange(waiting_[who], {});
  const auto error = sessions_[who]->take_error();
  if (ended.which == nullptr) {  // it was paused and has been let go
    if (!error.empty())
      failed_step_ = fmt::format("{} failed after its last step: {}", sessions_[who]->name(), error);
    return;
  }
  auto& line = trace_[ended.line];
  if (ended.line + 1 < trace_.size()) line += fmt::format("  -- waited until: {}", trace_.back());
  if (error.empty()) return;
  line += "  -- failed: " + error;
  if (!ended.which->may_fail) failed_step_ = "a step failed: " + line;
}

// Everybody ends what is under way, without pauses, and no transaction stays open.
void runner::wind_up(bool given_up) {
  for (const auto& one : sessions_) one->resume_for_good();
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (bool busy = true; busy;) {
    busy = false;
    for (std::size_t who = 0; who < sessions_.size(); ++who) {
      auto& one = *sessions_[who];
      if (!one.stands_within(look_every)) {
        busy = true;
        continue;
      }
      note_end(who);
      if (!one.in_transaction()) continue;
      one.start([&one] { one.execute("rollback"); });
      busy = true;
    }
    if (given_up) busy = roll_back_prepared() || busy;
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("a session does not end");
  }
}

// Whether there were any. One that its session is just about to end refuses: then it is gone at the next
// look.
bool runner::roll_back_prepared() const {
  const auto names = query("select gid from pg_prepared_xacts where database = current_database()");
  for (const auto& name : names) {
    const auto sql = "rollback prepared '" + name + "'";
    PQclear(PQexec(control_.get(), sql.c_str()));
  }
  return !names.empty();
}

bool runner::waits_for_a_lock(const session& one) const {
  return query(fmt::format("select exists (select from pg_stat_activity where datname = current_database() "
                           "and application_name = '{}' and cardinality(pg_blocking_pids(pid)) > 0)",
                           one.name()))
             .front() == "t";
}

std::vector<std::string> runner::query(const std::string& sql) const {
  const std::unique_ptr<PGresult, void (*)(PGresult*)> done(PQexec(control_.get(), sql.c_str()), PQclear);
  const auto status = PQresultStatus(done.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    throw std::runtime_error(sql + ": " + PQerrorMessage(control_.get()));
  std::vector<std::string> cells;
  for (int i = 0; i < PQntuples(done.get()); ++i) cells.emplace_back(PQgetvalue(done.get(), i, 0));
  return cells;
}

}  // namespace settle::isolation

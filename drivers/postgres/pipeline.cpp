#include "postgres/pipeline.hpp"

#include <poll.h>

#include "settle/error.hpp"

namespace settle::inline v0::postgres {
namespace {

constexpr int binary = 1;

}  // namespace

void pipeline::check_sent(int accepted) const {
  if (accepted != 0) return;
  const bool gone = PQstatus(conn_) == CONNECTION_BAD;
  throw error(gone ? errc::store_unavailable : errc::statement_failed, PQerrorMessage(conn_));
}

void pipeline::prepare(const std::string& name, std::string_view sql) {
  check_sent(PQsendPrepare(conn_, name.c_str(), std::string(sql).c_str(), 0, nullptr));
  steps_.push_back({.what = sql, .preparing = name});
}

void pipeline::run_prepared(const std::string& name, std::string_view sql, std::span<const value> values) {
  buffer_.assign(values);
  check_sent(PQsendQueryPrepared(conn_, name.c_str(), buffer_.count(), buffer_.data(), buffer_.lengths(),
                                 buffer_.formats(), binary));
  steps_.push_back({.what = sql});
}

void pipeline::run(std::string_view sql, std::span<const value> values) {
  buffer_.assign(values);
  run_with(buffer_.types(), sql);
}

void pipeline::run_as_typed(std::string_view sql, std::span<const value> values) {
  buffer_.assign(values);
  run_with(nullptr, sql);
}

// Of what is in the buffer.
void pipeline::run_with(const Oid* types, std::string_view sql) {
  check_sent(PQsendQueryParams(conn_, std::string(sql).c_str(), buffer_.count(), types, buffer_.data(),
                               buffer_.lengths(), buffer_.formats(), binary));
  steps_.push_back({.what = sql});
}

void pipeline::detach() {
  for (auto& step : steps_) {
    if (step.posted) continue;
    step.what = texts_.emplace_back(step.what);
    step.posted = true;
  }
}

// Of several results of one step the first failure counts, else the last. A failure after all of them is the
// commit's of a statement that was a transaction of its own.
void pipeline::keep(result_handle answer) {
  const bool late = answered_ >= steps_.size();
  if (steps_.empty() || (late && !failed(answer.get()))) return;
  auto& kept = steps_[late ? steps_.size() - 1 : answered_].answer;
  if (!kept || !failed(kept.get())) kept = std::move(answer);
}

// True when the exchange is over.
bool pipeline::take_answers() {
  while (PQisBusy(conn_) == 0) {
    result_handle answer(PQgetResult(conn_));
    if (!answer) {
      if (PQstatus(conn_) == CONNECTION_BAD) return false;
      ++answered_;
    } else if (PQresultStatus(answer.get()) == PGRES_PIPELINE_SYNC) {
      answer.reset(PQgetResult(conn_));  // lets libpq see that nothing more is queued
      return true;
    } else {
      copying_ = is_copy(answer.get());
      keep(std::move(answer));
      if (copying_) return true;  // libpq would say the same for ever
    }
  }
  return false;
}

// What had arrived before the line was lost: answers, and perhaps the server's reason for hanging up.
void pipeline::take_last_words() {
  const auto attempts = 2 * steps_.size() + 2;
  for (std::size_t i = 0; i < attempts && answered_ < steps_.size(); ++i) {
    result_handle answer(PQgetResult(conn_));
    if (answer && PQresultStatus(answer.get()) == PGRES_PIPELINE_SYNC) return;
    if (answer)
      keep(std::move(answer));
    else
      ++answered_;
  }
}

ending pipeline::collect(const limit& within) {
  if (!ended_ && PQpipelineSync(conn_) == 0) return ending::lost;
  ended_ = true;
  while (true) {
    const int unsent = PQflush(conn_);
    if (unsent >= 0 && take_answers()) return copying_ ? ending::lost : ending::complete;
    if (unsent < 0 || PQstatus(conn_) == CONNECTION_BAD) break;
    const short events = unsent == 0 ? POLLIN : POLLIN | POLLOUT;
    const auto waiting = wait_.wait(PQsocket(conn_), events, within);
    if (waiting == waited::timed_out) return ending::timed_out;
    if (waiting == waited::stopped) return ending::stopped;
    if (PQconsumeInput(conn_) == 0) break;
  }
  take_last_words();
  return ending::lost;
}

void pipeline::clear() {
  steps_.clear();
  texts_.clear();
  answered_ = 0;
  ended_ = false;
  copying_ = false;
}

}  // namespace settle::inline v0::postgres

// libpq's pipeline mode: statements are queued, sent together, and answered in order.
//
// After an error the server skips everything up to the end of the exchange, so what was queued behind a
// failed statement (a COMMIT, say) does not run.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postgres/encode.hpp"
#include "postgres/handle.hpp"
#include "postgres/poller.hpp"

namespace settle::inline v0::postgres {

// How an exchange ended. After timed_out and stopped it can be continued.
enum class ending { complete, timed_out, stopped, lost };

class pipeline {
 public:
  // One queued statement and, once the server has got to it, its answer.
  struct step {
    std::string_view what;       // the SQL
    bool posted = false;         // queued earlier, by somebody who does not wait for it
    std::string preparing = {};  // the name, if this step prepares a statement
    result_handle answer = nullptr;
    bool copies() const { return answer && is_copy(answer.get()); }
    bool skipped() const { return PQresultStatus(answer.get()) == PGRES_PIPELINE_ABORTED; }
  };

  pipeline(PGconn* conn, poller& wait) : conn_(conn), wait_(wait) {}

  // Each throws store_unavailable if the connection is gone. `sql` must live until the end of the exchange.
  void prepare(const std::string& name, std::string_view sql);
  void run_prepared(const std::string& name, std::string_view sql, std::span<const value> values);
  void run(std::string_view sql, std::span<const value> values);
  // The types of its parameters are those that its text gives them, as if it were prepared.
  void run_as_typed(std::string_view sql, std::span<const value> values);

  // What is queued so far outlives its texts, and nobody waits for it.
  void detach();

  bool empty() const { return steps_.empty(); }
  std::size_t size() const { return steps_.size(); }

  // Sends what is queued and collects the answers. Afterwards, and if the line is lost, steps() has them.
  ending collect(const limit& within);
  const std::vector<step>& steps() const { return steps_; }
  result_handle take_answer(std::size_t of_step) { return std::move(steps_[of_step].answer); }
  void clear();

 private:
  void check_sent(int accepted) const;
  void run_with(const Oid* types, std::string_view sql);
  bool take_answers();
  void take_last_words();
  void keep(result_handle answer);

  PGconn* conn_;
  poller& wait_;
  parameter_buffer buffer_;
  std::vector<step> steps_;
  std::deque<std::string> texts_;  // of detached steps
  std::size_t answered_ = 0;
  bool ended_ = false;    // the end of the exchange is queued
  bool copying_ = false;  // the server wants to copy, which no pipeline can do
};

}  // namespace settle::inline v0::postgres

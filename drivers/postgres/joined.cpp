// The user's own PGconn* with an open transaction, behind the sql interface.
#include <fmt/format.h>

#include <string_view>

#include "postgres/decode.hpp"
#include "postgres/exchange.hpp"
#include "postgres/sql_text.hpp"
#include "settle/driver/database.hpp"
#include "settle/error.hpp"
#include "settle/postgres.hpp"

namespace settle::inline v0::postgres {
namespace {

// Pipeline mode for the length of one call. The connection is idle before and after it.
class borrowed_pipeline {
 public:
  explicit borrowed_pipeline(PGconn* conn) : conn_(conn), blocking_(PQisnonblocking(conn) == 0) {
    if (PQsetnonblocking(conn_, 1) != 0 || PQenterPipelineMode(conn_) != 1)
      throw error(errc::invalid_argument,
                  fmt::format("cannot pipeline on the joined connection: {}", PQerrorMessage(conn_)));
  }
  ~borrowed_pipeline() {
    PQexitPipelineMode(conn_);
    if (blocking_) PQsetnonblocking(conn_, 0);
  }
  borrowed_pipeline(const borrowed_pipeline&) = delete;
  borrowed_pipeline& operator=(const borrowed_pipeline&) = delete;

 private:
  PGconn* conn_;
  bool blocking_;
};

class joined_connection final : public connection {
 public:
  explicit joined_connection(PGconn* conn) : conn_(conn), name_(std::string("database ") + PQdb(conn)) {
    check_usable();
    if (PQtransactionStatus(conn_) == PQTRANS_IDLE)
      throw error(errc::invalid_argument, "the connection has no open transaction: BEGIN first");
    const std::string_view encoding = pg_encoding_to_char(PQclientEncoding(conn_));
    if (encoding != "UTF8")
      throw error(errc::invalid_argument,
                  fmt::format("the connection's client_encoding is {}, it must be UTF8", encoding));
  }

  dialect speaks() const override { return dialect::postgres; }

  result execute(const query& text, std::span<const value> values) override {
    return execute(text.postgres, values);
  }
  result execute(std::string_view sql, std::span<const value> values) override {
    check_open(sql);
    const borrowed_pipeline mode(conn_);
    pipeline line(conn_, wait_);
    line.run(sql, values);
    finish(line);
    return read_result(line.steps().back().answer.get());
  }
  std::vector<std::int64_t> execute_many(const query& text, std::span<const parameters> rows) override {
    check_open(text.postgres);
    // Before the first is sent: the mode cannot be left while answers are due.
    for (const auto& row : rows) checked_.assign(row);
    const borrowed_pipeline mode(conn_);
    pipeline line(conn_, wait_);
    for (const auto& row : rows) line.run(text.postgres, row);
    finish(line);
    std::vector<std::int64_t> affected;
    for (const auto& step : line.steps()) affected.push_back(changed_rows(step.answer.get()));
    return affected;
  }
  void execute_script(std::string_view sql) override {
    for (const auto one : split_script(sql)) execute(one, {});
  }

  // The transaction began before us and ends after us: its owner does both.
  void begin_write(std::stop_token) override { refuse(); }
  void begin_read() override { refuse(); }
  void commit() override { refuse(); }
  void rollback() noexcept override {}

 private:
  [[noreturn]] static void refuse() {
    throw error(errc::transaction_control, "a joined transaction is begun and ended by its owner");
  }

  void check_usable() const {
    if (PQpipelineStatus(conn_) != PQ_PIPELINE_OFF)
      throw error(errc::invalid_argument,
                  "the joined connection is in pipeline mode, and its answers are its owner's: leave the "
                  "mode, or run publish_statement() in the pipeline");
    if (PQtransactionStatus(conn_) == PQTRANS_ACTIVE)
      throw error(errc::invalid_argument, "a statement of the owner is under way on the joined connection");
  }

  void check_open(std::string_view sql) const {
    check_usable();
    const auto status = PQtransactionStatus(conn_);
    const bool goes_back = status == PQTRANS_INERROR && returns_to_savepoint(sql);
    if (status != PQTRANS_INTRANS && !goes_back)
      throw error(errc::transaction_lost, "the joined transaction has ended or failed");
    if (controls_transaction(sql)) refuse();
    if (sql.empty()) throw error(errc::statement_failed, "the statement is empty");
  }

  void finish(pipeline& line) const { check_statements(round_trip(conn_, line, {}), line, name_); }

  PGconn* conn_;
  std::string name_;
  poller wait_;
  parameter_buffer checked_;
};

}  // namespace

joined_transaction::joined_transaction(pg_conn* open, const environment& env)
    : transaction(std::make_unique<joined_connection>(open), own_env_), own_env_(env) {}

joined_transaction::~joined_transaction() = default;

}  // namespace settle::inline v0::postgres

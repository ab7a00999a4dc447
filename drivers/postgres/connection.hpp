// One PostgreSQL session behind the sql interface.
//
// BEGIN travels with the first statement, posted statements with the next one or with COMMIT. So a
// transaction of one statement takes two round trips, and one of posted statements only takes one.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "postgres/encode.hpp"
#include "postgres/exchange.hpp"
#include "postgres/session.hpp"
#include "settle/database.hpp"
#include "settle/driver/database.hpp"
#include "settle/error.hpp"
#include "settle/postgres.hpp"
#include "sql/savepoints.hpp"

namespace settle::inline v0::postgres {

class postgres_connection final : public connection {
 public:
  // `committed` is called after a commit that was asked to wake others. All references must outlive it.
  postgres_connection(const settings& to, const options& with, const std::function<void()>& committed,
                      const std::stop_token& cancel);
  ~postgres_connection() override;

  dialect speaks() const override { return dialect::postgres; }
  void begin_write(std::stop_token cancel) override;
  void begin_read() override;
  void commit() override;
  void rollback() noexcept override;
  result execute(const query& text, std::span<const value> values) override;
  result execute(std::string_view sql, std::span<const value> values) override;
  std::vector<result> execute_last(std::span<const repeated> all, bool may_be_alone) override;
  std::vector<std::int64_t> execute_many(const query& text, std::span<const parameters> rows) override;
  std::vector<result> execute_all(std::span<const repeated> all) override;
  void execute_script(std::string_view sql) override;
  void post(const query& text, std::span<const value> values) override;
  void end_part() override;
  bool drop_part() noexcept override;
  void wake_on_commit() noexcept override { wake_ = true; }
  std::optional<cluster_identity> identity() const override { return identity_; }
  bool reusable() noexcept override;

 private:
  enum class phase { none, wanted, begun };  // wanted: BEGIN goes with the first statement

  void set_up(const limit& within);
  bool read_identity(std::string_view sql, const limit& within);
  void check_usable(bool to_savepoint = false) const;
  void check_unspoiled() const;
  void check_allowed(std::string_view sql);
  void check_allowed(std::span<const repeated> all);
  void begin_if_wanted();
  void begin_exchange();
  void queue(const query& text, std::span<const value> values);
  void queue_or_detach(const query& text, std::span<const value> values);
  void queue_posted();
  result run_queued();
  void finish(const limit& within);
  void check_line();
  void finish_commit();
  void wake_and_end();
  void settle_exchange(const outcome& of);
  bool silent() const noexcept;
  limit statement_limit() const;
  limit commit_limit() const;
  void end_transaction() noexcept;

  const settings& to_;
  const options& with_;
  const std::function<void()>& committed_;
  poller wait_;
  handle conn_;
  std::optional<pipeline> pipeline_;
  std::unordered_map<std::string_view, std::string> prepared_;  // text → name
  std::deque<std::string> texts_;                               // what prepared_ points to
  // Posted, and not handed to libpq yet: what is rolled back before the next exchange is never sent.
  struct posted_statement {
    std::string name, sql;
    parameters values;
  };
  std::vector<posted_statement> posted_;
  std::size_t posted_bytes_ = 0;  // about
  // Of the caller at work: where its posted statements begin, and whether it has sent any.
  struct part {
    std::size_t first = 0, first_byte = 0;
    bool sent = false;
  };
  part part_;
  parameter_buffer checked_;
  std::optional<cluster_identity> identity_;
  std::stop_token cancel_;
  phase phase_ = phase::none;
  sql::savepoints savepoints_;
  std::optional<errc> trouble_;  // of the store, in this transaction
  bool reading_ = false;
  bool standby_ = false;
  bool wake_ = false;
  bool outdated_ = false;  // good for this transaction at most
};

}  // namespace settle::inline v0::postgres

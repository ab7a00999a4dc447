// One SQLite session behind the sql interface.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "settle/database.hpp"
#include "settle/driver/database.hpp"
#include "sql/savepoints.hpp"
#include "sqlite/checkpointer.hpp"
#include "sqlite/handle.hpp"
#include "sqlite/statements.hpp"
#include "sqlite/write_queue.hpp"

namespace settle::inline v0::sqlite {

class sqlite_connection final : public connection {
 public:
  sqlite_connection(const location& where, write_queue& queue, checkpointer& checkpoints,
                    duration busy_timeout, const environment& env);
  ~sqlite_connection() override;

  dialect speaks() const override { return dialect::sqlite; }
  void begin_write(std::stop_token cancel) override;
  void begin_read() override;
  void commit() override;
  void rollback() noexcept override;
  result execute(const query& text, std::span<const value> values) override;
  result execute(std::string_view sql, std::span<const value> values) override;
  std::vector<std::int64_t> execute_many(const query& text, std::span<const parameters> rows) override;
  void execute_script(std::string_view sql) override;
  void end_part() override;
  bool mark_parts() override;
  bool drop_parts() noexcept override;

 private:
  static int authorize(void* self, int action, const char* first, const char* second, const char*,
                       const char*);
  static int committed(void* self, sqlite3*, const char*, int pages);

  int control(prepared_handle& kept, const char* sql) noexcept;
  void begin(prepared_handle& kept, const char* sql);
  void check_open() const;
  void end_transaction() noexcept;
  void checkpoint_if_due() noexcept;
  statements& noticing();
  template <class Run>
  auto noting_savepoints(Run run);
  statements::prepared& allowed(statements::prepared& what);

  const environment& env_;
  write_queue& queue_;
  checkpointer& checkpoints_;
  duration busy_timeout_;
  handle db_;
  prepared_handle begin_write_, begin_read_, commit_, rollback_, mark_, back_;
  statements statements_;
  write_queue::turn turn_;
  sql::savepoints savepoints_;
  std::optional<sql::savepoint_step> noticed_;  // in the statement that is being prepared
  std::stop_token cancel_;
  std::optional<std::stop_callback<std::function<void()>>> on_cancel_;
  bool reading_ = false;      // the open transaction is read-only
  bool controlling_ = false;  // our own BEGIN, COMMIT or ROLLBACK is being prepared
  int pages_in_log_ = 0;
};

}  // namespace settle::inline v0::sqlite

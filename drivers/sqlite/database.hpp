// A SQLite file: a pool of connections, the write queue in front of it, and its checkpoints.
#pragma once

#include <memory>
#include <string>

#include "settle/driver/database.hpp"
#include "settle/sqlite.hpp"
#include "sql/pool.hpp"
#include "sql/presence.hpp"
#include "sqlite/connection.hpp"
#include "sqlite/member_locks.hpp"
#include "sqlite/write_queue.hpp"

namespace settle::inline v0::sqlite {

class sqlite_database final : public database, public sql::member_register {
 public:
  sqlite_database(const std::string& path, const options& opts);

  dialect speaks() const override { return dialect::sqlite; }
  std::string name() const override { return where_.path; }
  std::unique_ptr<wakeup> watch() override;

  std::string_view mark() const override { return member_locks::mark; }
  std::unique_ptr<sql::presence> show(const std::string& member) override { return members_.show(member); }
  std::vector<std::string> gone_of(std::span<const std::string> members) override {
    return members_.gone_of(members);
  }

 protected:
  std::unique_ptr<connection> acquire(const std::stop_token& cancel) override;
  void release(std::unique_ptr<connection> idle) noexcept override;

 private:
  location where_;
  options options_;
  // Fails where the caller expects it, and creates the file; before anything is put beside one that is no
  // database.
  handle first_;
  write_queue queue_;
  member_locks members_;
  checkpointer checkpointer_;
  sql::pool pool_;  // last, because its connections use all of the above
};

}  // namespace settle::inline v0::sqlite

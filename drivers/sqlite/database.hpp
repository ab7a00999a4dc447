// A SQLite file: a pool of connections, the write queue in front of it, and its checkpoints.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "settle/sqlite.hpp"
#include "sqlite/connection.hpp"
#include "sqlite/write_queue.hpp"

namespace settle::inline v0::sqlite {

class sqlite_database final : public database {
 public:
  sqlite_database(const std::string& path, const options& opts);

  dialect speaks() const override { return dialect::sqlite; }
  std::string name() const override { return where_.path; }
  std::unique_ptr<wakeup> watch() override;

 protected:
  std::unique_ptr<connection> acquire() override;
  void release(std::unique_ptr<connection> idle) noexcept override;

 private:
  static constexpr std::size_t idle_max = 8;

  location where_;
  options options_;
  write_queue queue_;
  checkpointer checkpointer_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<connection>> idle_;
};

}  // namespace settle::inline v0::sqlite

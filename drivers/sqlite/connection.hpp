// One SQLite session behind the sql interface.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "settle/database.hpp"
#include "sqlite/checkpointer.hpp"
#include "sqlite/handle.hpp"
#include "sqlite/write_queue.hpp"

namespace settle::inline v0::sqlite {

class sqlite_connection final : public connection {
 public:
  sqlite_connection(const std::string& path, write_queue& queue, checkpointer& checkpoints,
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

 private:
  struct prepared {
    prepared_handle stmt;
    std::vector<int> parameter;  // parameter[i] is the number n of $n that SQLite calls i + 1
    int parameters = 0;          // the highest n
    bool writes = false;
  };
  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using cache = std::unordered_map<std::string, prepared, text_hash, std::equal_to<>>;

  static int authorize(void* self, int action, const char* first, const char* second, const char*,
                       const char*);
  static int committed(void* self, sqlite3*, const char*, int pages);

  void control(const char* sql);
  void check_open() const;
  void end_transaction() noexcept;
  void checkpoint_if_due() noexcept;
  prepared prepare(std::string_view sql);
  prepared& cached(cache& in, std::string_view key, std::string_view sql);
  result run_prepared(prepared& what, std::span<const value> values);
  void bind(prepared& what, std::span<const value> values);

  static constexpr std::size_t ad_hoc_max = 128;  // distinct texts kept prepared

  const environment& env_;
  write_queue& queue_;
  checkpointer& checkpoints_;
  duration busy_timeout_;
  handle db_;
  cache named_;
  cache ad_hoc_;
  write_queue::turn turn_;
  std::stop_token cancel_;
  std::optional<std::stop_callback<std::function<void()>>> on_cancel_;
  bool reading_ = false;      // the open transaction is read-only
  bool controlling_ = false;  // our own BEGIN, COMMIT or ROLLBACK is being prepared
  int pages_in_log_ = 0;
};

}  // namespace settle::sqlite

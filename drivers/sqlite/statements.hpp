// Prepared statements of one SQLite handle: made once, bound, run, read.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "settle/database.hpp"
#include "sql/savepoints.hpp"
#include "sqlite/handle.hpp"

namespace settle::inline v0::sqlite {

class statements {
 public:
  explicit statements(sqlite3* db) : db_(db) {}

  struct prepared {
    prepared_handle stmt;
    std::vector<int> parameter;  // parameter[i] is the number n of $n that SQLite calls i + 1
    int parameters = 0;          // the highest n
    bool writes = false;
    std::optional<sql::savepoint_step> savepoint = {};
    std::size_t cells = 0;  // of its last result: the next one is likely to be as large
  };

  // Kept prepared for as long as this object lives; texts without a name up to ad_hoc_max of them.
  prepared& named(const query& text) { return cached(named_, text.name, text.sqlite); }
  prepared& ad_hoc(std::string_view sql);

  result run(prepared& what, std::span<const value> values);
  std::vector<std::int64_t> run_many(prepared& what, std::span<const parameters> rows);

 private:
  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using cache = std::unordered_map<std::string, prepared, text_hash, std::equal_to<>>;

  prepared prepare(std::string_view sql);
  prepared& cached(cache& in, std::string_view key, std::string_view sql);
  void bind(prepared& what, std::span<const value> values);

  static constexpr std::size_t ad_hoc_max = 128;

  sqlite3* db_;
  cache named_;
  cache ad_hoc_;
};

}  // namespace settle::inline v0::sqlite

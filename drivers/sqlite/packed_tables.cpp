#include "sqlite/packed_tables.hpp"

#include <limits>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "base/encoding.hpp"
#include "base/packed.hpp"
#include "sqlite/handle.hpp"

namespace settle::inline v0::sqlite {
namespace {

void give_text(sqlite3_context* to, std::string_view text) {
  sqlite3_result_text64(to, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

struct keys_table {
  using reader = packed_keys;
  static constexpr const char* name = "settle_keys";
  static constexpr const char* declaration = "create table x(value text, packed hidden)";
  static constexpr int packed_column = 1;

  static void give(sqlite3_context* to, const reader& from, int) { give_text(to, from.key()); }
};

struct places_table {
  using reader = packed_places;
  static constexpr const char* name = "settle_places";
  static constexpr const char* declaration =
      "create table x(log text, position text, source text, lane integer, place text, packed hidden)";
  static constexpr int packed_column = 5;

  static void give(sqlite3_context* to, const reader& from, int column) {
    switch (column) {
      case 0:
        return give_text(to, from.log());
      case 1:
        return give_text(to, to_hex(from.position()));
      case 2:
        return give_text(to, from.source());
      case 3:
        return sqlite3_result_int(to, from.lane());
      default:
        return give_text(to, from.place());
    }
  }
};

// A table-valued function over one argument. SQLite knows the two structs by their first member only.
template <class Table>
struct module {
  struct cursor {
    sqlite3_vtab_cursor base{};
    std::string packed;  // the argument may not outlive the call that gives it
    std::optional<typename Table::reader> rows;
    sqlite3_int64 row = 0;
    bool ended = true;
  };
  static cursor& own(sqlite3_vtab_cursor* of) { return *reinterpret_cast<cursor*>(of); }

  static int connect(sqlite3* db, void*, int, const char* const*, sqlite3_vtab** made, char**) {
    const int done = sqlite3_declare_vtab(db, Table::declaration);
    if (done == SQLITE_OK) *made = new (std::nothrow) sqlite3_vtab{};
    return done == SQLITE_OK && *made == nullptr ? SQLITE_NOMEM : done;
  }
  static int disconnect(sqlite3_vtab* what) {
    delete what;
    return SQLITE_OK;
  }

  // Without its argument it cannot run.
  static int best_index(sqlite3_vtab*, sqlite3_index_info* info) {
    for (int i = 0; i < info->nConstraint; ++i) {
      const auto& given = info->aConstraint[i];
      if (given.iColumn != Table::packed_column || given.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
      if (given.usable == 0) return SQLITE_CONSTRAINT;
      info->aConstraintUsage[i].argvIndex = 1;
      info->aConstraintUsage[i].omit = 1;
      info->estimatedCost = 64;
      info->estimatedRows = 64;
      return SQLITE_OK;
    }
    return SQLITE_CONSTRAINT;
  }

  static int open(sqlite3_vtab*, sqlite3_vtab_cursor** made) {
    auto* const opened = new (std::nothrow) cursor;
    if (opened == nullptr) return SQLITE_NOMEM;
    *made = &opened->base;
    return SQLITE_OK;
  }
  static int close(sqlite3_vtab_cursor* what) {
    delete &own(what);
    return SQLITE_OK;
  }

  static int filter(sqlite3_vtab_cursor* of, int, const char*, int, sqlite3_value** arguments) {
    auto& at = own(of);
    try {
      const auto* const data = static_cast<const char*>(sqlite3_value_blob(arguments[0]));
      at.packed.assign(data == nullptr ? "" : data,
                       static_cast<std::size_t>(sqlite3_value_bytes(arguments[0])));
      at.rows.emplace(at.packed);
    } catch (const std::bad_alloc&) {
      return SQLITE_NOMEM;
    }
    at.row = 0;
    return next(of);
  }
  static int next(sqlite3_vtab_cursor* of) {
    auto& at = own(of);
    try {
      at.ended = !at.rows->next();
    } catch (const std::bad_alloc&) {
      return SQLITE_NOMEM;
    }
    ++at.row;
    return at.rows->is_broken() ? SQLITE_CORRUPT : SQLITE_OK;
  }
  static int is_at_end(sqlite3_vtab_cursor* of) { return own(of).ended ? 1 : 0; }
  static int column(sqlite3_vtab_cursor* of, sqlite3_context* to, int column) {
    auto& at = own(of);
    if (column != Table::packed_column) Table::give(to, *at.rows, column);
    return SQLITE_OK;
  }
  static int row_id(sqlite3_vtab_cursor* of, sqlite3_int64* id) {
    *id = own(of).row;
    return SQLITE_OK;
  }

  // Without xCreate it exists by its name alone, in every schema.
  static constexpr sqlite3_module methods = [] {
    sqlite3_module all{};
    all.xConnect = connect;
    all.xDisconnect = disconnect;
    all.xBestIndex = best_index;
    all.xOpen = open;
    all.xClose = close;
    all.xFilter = filter;
    all.xNext = next;
    all.xEof = is_at_end;
    all.xColumn = column;
    all.xRowid = row_id;
    return all;
  }();

  static void add(sqlite3* to) {
    if (sqlite3_create_module_v2(to, Table::name, &methods, nullptr, nullptr) != SQLITE_OK)
      throw_last_error(to, Table::name);
  }
};

}  // namespace

void add_packed_tables(sqlite3* to) {
  module<keys_table>::add(to);
  module<places_table>::add(to);
}

}  // namespace settle::inline v0::sqlite

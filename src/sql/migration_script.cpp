#include "sql/migration_script.hpp"

#include <fmt/format.h>

#include "queries/sql.hpp"

namespace settle::sql {
namespace {

std::string_view trimmed(std::string_view text) { return text.substr(0, text.find_last_not_of('\n') + 1); }

// The text of a query with its parameters written out. None of ours holds a quote or a dollar sign.
std::string with_values(std::string_view text, std::initializer_list<std::string> values) {
  std::string out(trimmed(text));
  int number = 0;
  for (const auto& one : values) {
    const auto name = fmt::format("${}", ++number);
    out.replace(out.find(name), name.size(), one);
  }
  return out;
}

std::string_view head_of(dialect of) {
  if (of == dialect::postgres)
    return "-- Run it with: psql -v ON_ERROR_STOP=1 -f FILE\n"
           "-- Everything will belong to the role that runs it. Relays and consumers need that role or all "
           "of its\n"
           "-- rights on the schema settle; whoever only publishes needs settle_publisher, which is made "
           "here if that role\n-- may create roles. If not, let somebody else create it first: create role "
           "settle_publisher nologin;\n"
           "begin;\n";
  return "-- Run it with: sqlite3 -bail FILE < SCRIPT, while nobody else has the file open.\n"
         "pragma journal_mode = wal;\n"
         "begin immediate;\n";
}

std::string guard_of(dialect of, int applied) {
  if (of == dialect::postgres)
    return fmt::format(
        "do $$\nbegin\n"
        "  if (select count(*) from settle.migrations) <> {0} then\n"
        "    raise exception 'this script is for a database with {0} of Settle''s migrations; print it "
        "anew';\n"
        "  end if;\nend $$;\n",
        applied);
  return fmt::format(
      "create temp table settle_script_begins_after (migrations check (migrations = {}));\n"
      "insert into settle_script_begins_after select count(*) from settle_migrations;\n"
      "drop table temp.settle_script_begins_after;\n",
      applied);
}

std::string now_of(dialect of) {
  return of == dialect::postgres ? "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
                                 : "cast(strftime('%s', 'now') as integer) * 1000000";
}

}  // namespace

std::string migration_script(dialect of, std::span<const migration> all, int applied) {
  const auto missing = all.subspan(static_cast<std::size_t>(applied));
  if (missing.empty()) return {};
  std::string out = fmt::format("-- Settle {}: migrations {} to {} of a service's database.\n",
                                SETTLE_VERSION, missing.front().number, missing.back().number);
  out += head_of(of);
  for (const auto* one : {&queries::sql::lock_migrations, &queries::sql::create_migration_schema,
                          &queries::sql::create_migration_table})
    if (trimmed(one->text(of)) != "select 1") out += fmt::format("{};\n", trimmed(one->text(of)));
  out += guard_of(of, applied);
  for (const auto& one : missing) {
    const auto record = with_values(queries::sql::record_migration.text(of),
                                    {std::to_string(one.number), fmt::format("'{}'", one.name),
                                     fmt::format("'{}'", checksum(one)), now_of(of)});
    out += fmt::format("\n-- {}: {}\n{}\n{};\n", one.number, one.name, one.text, record);
  }
  return out + "\ncommit;\n";
}

}  // namespace settle::sql

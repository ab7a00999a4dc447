// What is known of somebody else's outbox table, read at once, and the judgements on it.
#pragma once

#include "doctor/doctor.hpp"
#include "doctor/layout.hpp"

namespace settle::doctor {

struct table_index {
  bool primary = false;
  bool unique = false;
  std::string condition;             // of a partial index
  std::vector<std::string> columns;  // an expression has no name
  bool for_status = false;           // partial, and its condition looks at the status
};

struct table_activity {  // since the server's statistics began
  std::int64_t live = 0, dead = 0, inserted = 0, updated = 0, updated_in_place = 0, deleted = 0;
  std::optional<timestamp> vacuumed;
  std::int64_t bytes = 0, row_bytes = 0;
};

struct table_facts {
  std::string name;   // quoted, with its schema
  std::string plain;  // alone and unquoted
  bool partitioned = false;
  bool unlogged = false;
  int fillfactor = 100;
  bool autovacuum_disabled = false;
  std::vector<column> columns;
  layout shape;
  std::vector<table_index> indexes;
  table_activity activity;
  std::vector<std::pair<std::string, std::string>> notifying;  // trigger and function
  std::int64_t logical_slots = 0;
};

table_facts read_table(transaction& tx, const std::string& table);

void judge_loss(const table_facts& of, findings& into);
void judge_order(const table_facts& of, findings& into);
void judge_keys(const table_facts& of, findings& into);
void judge_pending_index(const table_facts& of, findings& into);
void judge_bloat(const table_facts& of, const limits& normal, timestamp now, findings& into);
void judge_retention(const table_facts& of, const limits& normal, findings& into);
void judge_storage(const table_facts& of, findings& into);

}  // namespace settle::doctor

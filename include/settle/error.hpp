// Errors of Settle: one exception type, flat codes, and properties that say what to do next.
//
//   try {
//     tx.commit();
//   } catch (const settle::error& e) {
//     if (e.outcome_unknown()) retry_with_the_same_business_key();  // a conflict means: it had committed
//     else if (e.retryable())  retry_later();
//     else                     throw;
//   }
//
// Expected outcomes (a duplicate, an empty queue) are values, never exceptions. Every code has a page
// in docs/errors/ that tells what happened, what was left behind and what to do.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace settle::inline v0 {

enum class errc {
  invalid_argument,         // a value outside its documented bounds
  invalid_name,             // topic, type, key or header: empty, too long, control character or not UTF-8
  payload_too_large,        // payload above payload_bytes_max
  decode_failed,            // a payload that its codec cannot read
  message_id_missing,       // a message without an id, so it cannot be deduplicated
  store_busy,               // another writer kept the database for longer than busy_timeout
  store_unavailable,        // the database cannot be opened, read or written
  store_full,               // no space left for the database
  store_corrupt,            // the file is damaged or is not a database
  constraint_violated,      // a CHECK, UNIQUE, NOT NULL or foreign key constraint refused the write
  statement_failed,         // SQL that the database does not accept
  unexpected_result,        // a row, a column or a type was read that the result does not have
  transaction_lost,         // the database rolled the transaction back by itself
  transaction_control,      // BEGIN, COMMIT, ROLLBACK or a durability pragma sent as a statement
  schema_missing,           // Settle's tables are not there: migrate first
  schema_newer,             // the database was migrated by a newer version
  migration_changed,        // an applied migration differs from the one in this build
  cluster_changed,          // the outbox belongs to another history of this database
  ownership_lost,           // another owner has taken over the share or partition
  destination_unavailable,  // the broker cannot be reached or cannot take messages now
  message_rejected,         // the broker will never accept this message
  listen_failed,            // a server cannot have its address
  cancelled,                // stopped by the caller
};

// What the caller needs to know about a code, in one row.
struct error_info {
  errc code;
  std::string_view name;    // stable; appears in logs, JSON output and docs/errors/<name>.md
  bool retryable;           // the same call may succeed later, unchanged
  std::string_view advice;  // what to do, one sentence
};

std::span<const error_info> all_errors();
const error_info& info(errc code);
std::string_view to_string(errc code);

class error : public std::runtime_error {
 public:
  error(errc code, const std::string& detail);

  // The effect may or may not have happened. Resolve it with a conflicting write of the same key
  // (repeat the transaction: a unique key answers), never with a plain read and never with a guess.
  static error with_unknown_outcome(errc code, const std::string& detail);

  errc code() const noexcept { return code_; }
  bool retryable() const { return info(code_).retryable; }
  bool outcome_unknown() const noexcept { return outcome_unknown_; }

 private:
  errc code_;
  bool outcome_unknown_ = false;
};

}  // namespace settle

#pragma GCC visibility pop

#include "settle/error.hpp"

#include <array>

#include "base/check.hpp"

namespace settle::inline v0 {
namespace {

constexpr bool retry = true;
constexpr bool final_ = false;

constexpr std::array table{
    error_info{errc::invalid_argument, "invalid_argument", final_,
               "correct the value that the message names"},
    error_info{errc::invalid_name, "invalid_name", final_, "correct the name as the message says"},
    error_info{errc::payload_too_large, "payload_too_large", final_,
               "store the document elsewhere and publish its address, or raise payload_bytes_max"},
    error_info{errc::decode_failed, "decode_failed", final_,
               "make the codec accept this payload, or correct the publisher"},
    error_info{
        errc::message_id_missing, "message_id_missing", final_,
        "let the publisher set a message id, choose dedup_key::aggregate_and_type, or say where the id is "
        "(settle/message_mapping.hpp)"},
    error_info{errc::store_busy, "store_busy", retry,
               "try again; if it stays, look for a process that keeps a transaction open"},
    error_info{
        errc::store_unavailable, "store_unavailable", retry,
        "check that the server is up, or that the file's folder exists and is writable; then try again"},
    error_info{errc::store_full, "store_full", retry, "free disk space; nothing was lost"},
    error_info{errc::store_corrupt, "store_corrupt", final_,
               "stop writing to this file and restore it from a backup"},
    error_info{errc::constraint_violated, "constraint_violated", final_,
               "the row conflicts with a rule of your schema; if a retried key conflicts, its first attempt "
               "had committed"},
    error_info{errc::statement_failed, "statement_failed", final_, "correct the statement"},
    error_info{errc::unexpected_result, "unexpected_result", final_,
               "correct the code that reads the result, or the statement"},
    error_info{errc::transaction_lost, "transaction_lost", final_,
               "begin a new transaction and repeat all of it"},
    error_info{errc::transaction_control, "transaction_control", final_,
               "call commit() or rollback() on the transaction you began; a handler's transaction is "
               "committed for it"},
    error_info{errc::schema_missing, "schema_missing", final_,
               "run `settle migrate`, or call settle::migrate(db) at start"},
    error_info{errc::schema_newer, "schema_newer", final_,
               "upgrade this program to the version that migrated the database"},
    error_info{errc::migration_changed, "migration_changed", final_,
               "use the build that matches this database; applied migrations never change"},
    error_info{errc::cluster_changed, "cluster_changed", final_,
               "make sure that this is the right server, then run `settle outbox rebase`"},
    error_info{errc::ownership_lost, "ownership_lost", retry,
               "nothing was written; the new owner does the work"},
    error_info{errc::destination_unavailable, "destination_unavailable", retry,
               "bring the broker back; work resumes by itself"},
    error_info{errc::message_rejected, "message_rejected", final_,
               "correct the message, or the broker's limits"},
    error_info{errc::listen_failed, "listen_failed", final_,
               "choose another port, or stop the program that has this one"},
    error_info{errc::cancelled, "cancelled", retry,
               "nothing to do: the caller asked to stop, and nothing was written"},
};

void erase_all(std::string& from, const std::string& what, std::size_t kept) {
  for (auto at = from.find(what); at != std::string::npos; at = from.find(what, at))
    from.erase(at + kept, what.size() - kept);
}

// The text of another error of this code may be in it, where one was passed on or put into a longer sentence.
std::string compose(errc code, std::string detail) {
  const auto& about = info(code);
  const auto name = std::string(about.name) + ": ", advice = " (" + std::string(about.advice) + ")";
  if (detail.starts_with(name)) detail.erase(0, name.size());
  erase_all(detail, ": " + name, 2);
  erase_all(detail, advice, 0);
  return name + detail + advice;
}

}  // namespace

std::span<const error_info> all_errors() { return table; }

const error_info& info(errc code) {
  const auto& row = table.at(static_cast<std::size_t>(code));
  SETTLE_CHECK(row.code == code, "the error table is in the order of errc");
  return row;
}

std::string_view to_string(errc code) { return info(code).name; }

error::error(errc code, const std::string& detail) : std::runtime_error(compose(code, detail)), code_(code) {}

error error::with_unknown_outcome(errc code, const std::string& detail) {
  constexpr std::string_view doubt = "; the commit may have happened, so repeat it under the same key";
  error made(code, detail.find(doubt) == std::string::npos ? detail + std::string(doubt) : detail);
  made.outcome_unknown_ = true;
  return made;
}

}  // namespace settle

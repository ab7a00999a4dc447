// What is stored of an identity and of an answer. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "settle/once.hpp"

namespace settle::keys {

// Throws invalid_argument or invalid_name.
void check_identity(const request_identity& who);

// An answer that can be recorded. Throws payload_too_large, which names the limit, or invalid_argument.
void check_answer(const answer& of, std::size_t bytes_max, std::string_view limit);

// The name of an identity: 32 bytes that tell nobody whose key it was.
std::string identity_of(const request_identity& who);

// The lock of an identity, where locks have numbers.
std::int64_t lock_number(const std::string& identity);

// Of a fingerprint that is not empty, likewise: 32 bits. Two that share a number are taken for the same
// while the first of them is at work.
std::int64_t shown_number(const std::string& fingerprint);

// Of an identity, 32 bits: the first half of its lock's number, beside which a fingerprint is shown.
std::int64_t shown_beside(const std::string& identity);

// Of the fingerprint that a caller gave; empty for an empty one.
std::string fingerprint_of(std::string_view given);

struct stored_answer {
  std::string run;
  std::string fingerprint;
  answer what;
};

// An answer as it is stored.
struct stored_form {
  std::int64_t status = 0;
  std::string headers;  // JSON array of [name, value]
  std::string body;
  std::string hash;  // of the three
};
stored_form stored_of(const answer& of);  // without its body
// Throws store_corrupt if the hash is another one.
answer answer_from(const stored_form& of);

// status, headers, body and hash of an answer, as the last four columns of a record.
void append_answer(parameters& row, const answer& of);
// Of the first row: run, fingerprint and those four, from the column `first` on; nothing if there is no row.
// Throws store_corrupt if the hash is another one.
// Where a query has the columns of an answer.
struct stored_columns {
  std::size_t run, fingerprint, status, headers, body, response_hash;
};

std::optional<stored_answer> read_stored(const result& rows, const stored_columns& at);

// Where one of them is empty, nothing has to be the same.
inline bool same_request(std::string_view fingerprint, std::string_view other) {
  return fingerprint.empty() || other.empty() || fingerprint == other;
}

}  // namespace settle::keys

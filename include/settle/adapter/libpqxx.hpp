// Settle's statements in a transaction of libpqxx (6.4 as Debian 12 has it, or newer 6.x).
//
//   pqxx::work tx(connection);
//   tx.exec_params("insert into orders (id) values ($1)", id);
//   settle::libpqxx::execute(tx, settle::publish_statement(to_publish));
//   tx.commit();
//
// The statement is part of the caller's transaction: it commits and rolls back with it. libpqxx keeps its
// connection to itself, so the statement is a round trip of its own, and nobody is woken by the commit:
// relays find it with their next poll. The connection's client_encoding must be UTF8.
//
// Errors: those of libpqxx; settle::error with invalid_argument for text with a NUL inside, or a statement
// that has no text for PostgreSQL.
//
// Link libpqxx (pkg-config libpqxx), or the component settle::libpqxx.
#pragma once

#include <cstdint>
#include <pqxx/prepared_statement>
#include <pqxx/result>
#include <pqxx/transaction_base>
#include <string>
#include <variant>
#include <vector>

#include "settle/database.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::libpqxx {

namespace detail {

// A value as PostgreSQL reads it from text; libpqxx takes parameters of unknown number only in this form.
struct to_text {
  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(double number) const { return pqxx::to_string(number); }
  std::string operator()(const std::string& text) const {
    if (text.find('\0') != std::string::npos)
      throw error(errc::invalid_argument, "text with a NUL inside; PostgreSQL cannot hold it, bytes can");
    return text;
  }
  std::string operator()(const decimal& number) const { return (*this)(number.digits); }
  std::string operator()(const blob& data) const {
    constexpr char digits[] = "0123456789abcdef";
    std::string hex = "\\x";
    hex.reserve(2 + 2 * data.bytes.size());
    for (const unsigned char byte : data.bytes) {
      hex += digits[byte >> 4];
      hex += digits[byte & 15];
    }
    return hex;
  }
};

}  // namespace detail

inline pqxx::result execute(pqxx::transaction_base& tx, const statement& what) {
  if (what.text.postgres.empty())
    throw error(errc::invalid_argument, "'" + std::string(what.text.name) + "' has no text for PostgreSQL");
  std::vector<std::string> texts;
  texts.reserve(what.values.size());
  for (const auto& one : what.values) texts.push_back(std::visit(detail::to_text{}, one.variant()));
  std::vector<const char*> given;
  given.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i)
    given.push_back(what.values[i].is_null() ? nullptr : texts[i].c_str());
  return tx.exec_params(std::string(what.text.postgres), pqxx::prepare::make_dynamic_params(given));
}

}  // namespace settle::inline v0::libpqxx

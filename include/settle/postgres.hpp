// PostgreSQL (14 or newer) as the store.
//
//   auto db = settle::postgres::open("host=db.internal dbname=orders user=orders");
//   settle::migrate(*db);
//
// The connection string is libpq's, as keywords or as a URI. Nothing connects until the first transaction
// does; a server that is away costs a retryable error then, and is found again by the next transaction.
//
// Statements travel in pipelines: BEGIN goes with the first one, posted ones with the next one or with
// COMMIT. Parameters are sent as text whose type the server infers ($1::bigint where it cannot), bytes as
// they are; text cannot hold a NUL. Results come back as value.hpp has them:
//
//   | type | read it with |
//   |---|---|
//   | smallint, integer, bigint, oid | integer() |
//   | boolean | boolean(), integer() |
//   | real, double precision | real() |
//   | numeric, so sum(bigint) and avg() | integer() if it is a whole number, real(), text() with all digits |
//   | text, varchar, char, json, jsonb, uuid, xml | text() |
//   | date, time, interval | text(), as ::text writes it: "2026-01-31" |
//   | timestamptz, timestamp | time(), integer(): microseconds since 1970 |
//   | bytea | bytes() |
//
// Arrays, ranges, enums and types of extensions need a cast in the statement, status::text; an array may be
// to_json(tags). Without it the error says so.
//
// What differs from SQLite: a statement that fails ends the transaction (transaction_lost), unless the
// caller goes back to a savepoint of its own. A session setting outlives its transaction in the pool, so
// say SET LOCAL.
//
// Guarantees: commit() returns after the server has said COMMIT, with the durability that its
// synchronous_commit gives. If the connection is lost while it waits for that word, the error says
// outcome_unknown(); so it does if statement_timeout or a stop has cancelled the wait, because the server may
// then have said COMMIT without its synchronous standby. Threads: as database.hpp says. Errors never contain
// the password.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "settle/database.hpp"

struct pg_conn;  // libpq's own handle, PGconn

#pragma GCC visibility push(default)
namespace settle::inline v0::postgres {

struct options {
  environment env = {};
  // How long a new connection may take, over all hosts of the connection string. Name resolution is not
  // counted, because libpq does not let it be stopped.
  duration connect_timeout = std::chrono::seconds(5);
  // How long to wait for a free connection of the pool, and for a lock that another transaction holds (the
  // session's lock_timeout), before store_busy (retryable).
  duration busy_timeout = std::chrono::seconds(10);
  // How long a statement or a commit may take from its sending to its answer. Then the server is asked to
  // cancel it (store_busy), and if it does not answer within a second the connection is closed
  // (store_unavailable). It bounds how long a line that was cut in silence is waited on. Scripts, so
  // migrations, have no such limit.
  duration statement_timeout = std::chrono::seconds(30);
  // Connections, so transactions, at the same time. Each is a process of the server, and its max_connections
  // (100 by default) is for all programs. A watch(), the sender of wake-ups and relays have one more each.
  int connections_max = 16;
  // Statements with names are prepared once per connection. Switch it off behind a pooler in transaction
  // mode (PgBouncer): then nothing is left in a session, busy_timeout does not reach locks, and watch()
  // wakes only for commits of this process.
  bool prepared_statements = true;
};

// Throws invalid_argument if the connection string cannot be read.
std::unique_ptr<database> open(const std::string& conninfo, const options& opts = {});

// Your own connection with an open transaction, taken as it is: publish in it, then end it yourself.
//
//   PQclear(PQexec(mine, "begin"));
//   …
//   settle::postgres::joined_transaction tx(mine);
//   settle::publish(tx, order_placed{id, 4200});
//   …
//   PQclear(PQexec(mine, "commit"));
//
// The connection must be idle inside a transaction, not in pipeline mode, and its client_encoding UTF8 (to
// pipeline, run publish_statement() yourself). Only unnamed statements are used, settings are left as they
// are, and each call waits for its answer as PQexec does. Nobody is woken by your commit; relays find
// it with their next poll. The program must link the same libpq as Settle.
class joined_transaction final : public transaction {
 public:
  explicit joined_transaction(pg_conn* open, const environment& env = {});
  ~joined_transaction();

 private:
  environment own_env_;
};

// Many values as one parameter, for statements that unnest it:
//
//   tx.execute("insert into seen (id) select unnest($1::text[])", {settle::postgres::array(ids)});
//
// The cast names the type: text[], bigint[] or bytea[].
value array(std::span<const std::string> elements);
value array(std::span<const std::int64_t> elements);
value array(std::span<const blob> elements);

}  // namespace settle::inline v0::postgres

#pragma GCC visibility pop

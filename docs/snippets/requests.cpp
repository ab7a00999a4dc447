// What docs/guides/requests.md quotes: a request that is executed once.
//
// Usage: requests <folder>      an existing, empty folder for the database file
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "settle/claims.hpp"
#include "settle/database.hpp"
#include "settle/http.hpp"
#include "settle/http_once.hpp"
#include "settle/once.hpp"
#include "settle/sqlite.hpp"

namespace {

std::optional<std::string> user_of(const settle::http::request& asked) {
  const auto found = asked.headers.find("Authorization");  // your own check goes here
  return found ? std::optional(std::string(*found)) : std::nullopt;
}

// [snippet: place_order]
std::string place_order(settle::database& db, const std::string& user, const std::string& key,
                        std::int64_t cents) {
  const auto fingerprint = "POST /orders " + std::to_string(cents);
  const auto result = settle::once(
      db, {.service = "shop", .caller = user, .key = key},
      [&](settle::transaction& tx) {
        const auto left = tx.execute("update stock set left = left - 1 where left > 0 returning left");
        if (left.empty())
          return settle::answer{.status = 409, .body = "sold out", .keep = settle::keeps::answer};
        tx.execute("insert into orders (buyer, cents) values ($1, $2)", {user, cents});
        return settle::answer{.status = 201, .body = "ordered"};
      },
      {.fingerprint = fingerprint});
  const bool again = result.outcome == settle::once_outcome::replayed;
  return std::to_string(result.what.status) + " " + result.what.body + (again ? " (again)" : "");
}
// [end]

// [snippet: http_route]
settle::http::router routes(settle::database& db) {
  const settle::http::idempotency policy{
      .service = "shop", .caller = [](const settle::http::request& asked) { return user_of(asked); }};
  settle::http::router made;
  made.post("/gifts", settle::http::idempotent(db, policy, [](const auto& asked, settle::transaction& tx) {
              tx.execute("insert into orders (buyer, cents) values ($1, 0)", {asked.body});
              return settle::http::text(201, "text/plain", "a gift for " + asked.body);
            }));
  return made;
}
// [end]

// A payment provider that deduplicates nothing, but can be asked.
struct gateway {
  int payments = 0;
  void pay(const std::string&) { ++payments; }
  bool has_paid(const std::string&) const { return payments > 0; }
};

// [snippet: charge]
std::string charge(settle::claims& keys, gateway& bank, const std::string& user, const std::string& key) {
  const settle::request_identity who{"shop", user, key};
  const auto got =
      keys.claim({.who = who, .fingerprint = "POST /payments", .on_unknown = settle::when_unknown::ask});
  switch (got.outcome) {
    case settle::claim_outcome::claimed:
      bank.pay(key);
      break;
    case settle::claim_outcome::ask:  // whoever had it before was not heard of again
      if (!bank.has_paid(key)) {
        keys.release(who, got.token);
        return "503 come again";
      }
      break;
    case settle::claim_outcome::completed:
      return std::to_string(got.what.status) + " " + got.what.body + " (again)";
    case settle::claim_outcome::mismatch:
    case settle::claim_outcome::in_flight:
    case settle::claim_outcome::unknown:
      return std::to_string(got.what.status) + " " + got.what.body;  // a refusal: 422 or 409
  }
  keys.complete(who, got.token, {.status = 201, .body = "paid"});
  return "201 paid";
}
// [end]

std::string give(settle::database& db, const std::string& key) {
  settle::http::request asked{.method = "POST", .target = "/gifts", .body = "bob"};
  asked.headers.add("Authorization", "ann");
  asked.headers.add("Idempotency-Key", key);
  const auto got = routes(db).handle(asked);
  return std::to_string(got.status) + " " + got.body +
         ", replayed: " + std::string(got.headers.find("Idempotent-Replayed").value_or("-"));
}

int run(const std::string& folder) {
  const auto db = settle::sqlite::open(folder + "/shop.db");
  settle::migrate(*db);
  auto tx = db->begin();
  tx.execute("create table orders (id integer primary key, buyer text not null, cents integer not null)");
  tx.execute("create table stock (left integer not null)");
  tx.execute("insert into stock (left) values (1)");
  tx.commit();

  std::string seen;
  seen += place_order(*db, "ann", "k-1", 4200) + "\n";
  seen += place_order(*db, "ann", "k-1", 4200) + "\n";
  seen += place_order(*db, "ann", "k-1", 9900) + "\n";
  seen += place_order(*db, "bob", "k-1", 4200) + "\n";
  seen += give(*db, "\"g-1\"") + "\n";
  seen += give(*db, "g-1") + "\n";
  const auto keys = settle::open_claims(*db);
  gateway bank;
  seen += charge(*keys, bank, "ann", "p-1") + "\n";
  seen += charge(*keys, bank, "ann", "p-1") + "\n";
  std::fputs(seen.c_str(), stdout);
  const std::string expected =
      "201 ordered\n201 ordered (again)\n"
      "422 {\"type\":\"about:blank\",\"title\":\"Unprocessable Content\",\"status\":422,\"detail\":\"this "
      "key was used "
      "for another request; a new action needs a new key\",\"code\":\"idempotency_key_reused\"}\n\n"
      "409 sold out\n"
      "201 a gift for bob, replayed: false\n201 a gift for bob, replayed: true\n"
      "201 paid\n201 paid (again)\n";
  return seen == expected && bank.payments == 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return argc == 2 ? run(argv[1]) : 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

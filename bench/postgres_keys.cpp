// PostgreSQL: idempotency keys over HTTP. 64 clients claim a key and complete it, again and again. Against 32
// that do the same on connections of their own, with a transaction for each claim and each completion.
#include <array>
#include <thread>

#include "clients.hpp"
#include "daemon/api/keys.hpp"
#include "http_load.hpp"
#include "raw_postgres.hpp"
#include "settle/http_server.hpp"
#include "settle/postgres.hpp"

namespace {

constexpr int http_clients = 64;
constexpr int raw_clients = 32;
constexpr double target = 2;
constexpr double transactions_max = 0.1;  // per request
constexpr std::int64_t to_tell = 4 * http_clients;

// The raw side's own table, with the same columns and indexes.
constexpr auto raw_table =
    "create table raw_claims (identity bytea primary key, service text not null, run text not null, epoch "
    "bigint not "
    "null, fingerprint bytea not null, claimed_at bigint not null, lease_until bigint not null, expires_at "
    "bigint not "
    "null, status integer, headers text, body bytea, response_hash bytea) with (fillfactor = 60); "
    "create index on raw_claims (expires_at)";

class raw_client {
 public:
  raw_client(const std::string& conninfo, int number) : on_(conninfo), number_(number) {
    on_.prepare(
        "claim",
        "insert into raw_claims select sha256($1::bytea), 'shop', $2, 1, sha256('x'), 0, 0, 0 on conflict do "
        "nothing");
    on_.prepare(
        "complete",
        "update raw_claims set status = 201, headers = '[]', body = '{\"id\":7}', response_hash = "
        "sha256('x'), expires_at = 0 where identity = sha256($1::bytea) and run = $2 and status is null");
  }
  void claim_and_complete() {
    const auto key = std::to_string(number_) + "-" + std::to_string(++last_);
    on_.run_prepared("claim", {key, run_});
    on_.run_prepared("complete", {key, run_});
  }

 private:
  bench::raw_connection on_;
  int number_;
  std::int64_t last_ = 0;
  std::string run_ = "018f4e4e-0000-7000-8000-000000000001";
};

// Claims, and completes what it has claimed. Like the raw side's, its clients only fill in their texts.
class key_script {
 public:
  std::string operator()(std::size_t client, std::string_view heard) {
    auto& key = keys_[client];
    const auto token = token_in(heard);
    if (token.empty()) {
      key = "k-" + std::to_string(++last_);
      return bench::post_of(
          "/v1/keys/claim",
          member_of(key) + R"("service":"shop","caller":"ann","fingerprint":"POST /orders"})");
    }
    return bench::post_of("/v1/keys/complete",
                          member_of(key) + R"("service":"shop","caller":"ann","token":")" +
                              std::string(token) + R"(","answer":{"status":201,"body":"{\"id\":7}"}})");
  }

 private:
  static std::string member_of(const std::string& key) { return R"({"key":")" + key + R"(",)"; }

  // Of one that holds its key; otherwise empty.
  static std::string_view token_in(std::string_view heard) {
    constexpr std::string_view before = R"("outcome":"claimed","token":")";
    constexpr std::size_t token_bytes = 36;
    const auto at = heard.find(before);
    return at == std::string_view::npos ? std::string_view() : heard.substr(at + before.size(), token_bytes);
  }

  std::array<std::string, http_clients> keys_;
  std::int64_t last_ = 0;
};

std::vector<bench::report> run(const bench::options& opts, const std::string& server) {
  const bench::scratch own(server, "keys");
  bench::raw_connection raw(own.conninfo());
  raw.run(raw_table);
  const auto db = settle::postgres::open(own.conninfo());
  const auto keys = settle::open_claims(*db);
  settle::http::router routes;
  settle::daemon::add_key_routes(routes, [&]() -> settle::claims& { return *keys; });
  settle::http::server serving(std::move(routes), {.worker_threads = 4});
  bench::http_load load(serving.port(), http_clients, key_script());
  std::vector<std::unique_ptr<raw_client>> clients;
  for (int n = 0; n < raw_clients; ++n) clients.push_back(std::make_unique<raw_client>(own.conninfo(), n));

  const int rounds = opts.quick ? 1 : 15;
  const std::int64_t requests = opts.quick ? 256 : 12'800;
  const auto commits = [&] {
    return raw.number("select xact_commit from pg_stat_database where datname = current_database()");
  };
  const auto turns = bench::take_turns(
      rounds, [&] { return bench::measure(requests, [&] { load.run(requests); }); },
      [&] {
        return bench::in_parallel({1, raw_clients, requests / raw_clients / 2}, [&](int client) {
          clients[static_cast<std::size_t>(client)]->claim_and_complete();
        });
      });
  // The raw side counts pairs.
  auto adjusted = turns;
  for (auto& one : adjusted.raw) one.units *= 2;
  auto made = bench::compare(adjusted, target);
  made.name = "postgres_keys";
  made.what = "claim and complete over HTTP, 64 connections; raw: a transaction each, 32 connections";
  made.unit = "requests/s";
  bench::keep_processor_time_only(made);
  clients.clear();
  // Alone. A session tells what it has counted with a later transaction, at most once per second: the
  // requests after each pause are there for that.
  const auto commits_told = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    load.run(to_tell);
    return commits();
  };
  const auto before = commits_told();
  load.run(requests);
  const auto asked = requests + to_tell;
  const auto transactions = commits_told() - before - 1;
  const auto per_request = static_cast<double>(transactions) / static_cast<double>(asked);
  made.counters.push_back({"transactions_per_request", per_request});
  if (per_request > transactions_max) made.reached = false;
  made.target += ", at most 0.1 transactions per request";
  return {made};
}

}  // namespace

int main(int argc, char** argv) { return bench::run_on_postgres(argc, argv, run); }

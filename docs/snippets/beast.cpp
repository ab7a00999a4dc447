// What docs/guides/requests.md quotes: idempotent requests behind a Boost.Beast server of one's own.
//
// Usage: beast <folder>      an existing, empty folder for the database file
#include "settle/adapter/beast.hpp"

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include "settle/database.hpp"
#include "settle/http_once.hpp"
#include "settle/sqlite.hpp"

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

settle::http::router routes(settle::database& db) {
  const settle::http::idempotency policy{
      .service = "shop", .caller = [](const settle::http::request& asked) -> std::optional<std::string> {
        const auto found = asked.headers.find("Authorization");  // your own check goes here
        return found ? std::optional(std::string(*found)) : std::nullopt;
      }};
  settle::http::router made;
  made.post("/gifts", settle::http::idempotent(db, policy, [](const auto& asked, settle::transaction& tx) {
              tx.execute("insert into gifts (buyer) values ($1)", {asked.body});
              return settle::http::text(201, "text/plain", "a gift for " + asked.body);
            }));
  return made;
}

// [snippet: beast_session]
void serve(tcp::socket connected, const settle::http::router& routes) {
  boost::beast::flat_buffer buffer;
  for (boost::beast::error_code failed;;) {
    http::request<http::string_body> asked;
    http::read(connected, buffer, asked, failed);
    if (failed) return;
    const auto answer = settle::http::to_beast(routes.handle(settle::http::from_beast(asked)), asked);
    http::write(connected, answer, failed);
    if (failed || !answer.keep_alive()) return;
  }
}
// [end]

// What a client sees of two requests with one key.
void ask_twice(const tcp::endpoint& at) {
  asio::io_context io;
  tcp::socket to(io);
  to.connect(at);
  boost::beast::flat_buffer buffer;
  for (int n = 0; n < 2; ++n) {
    http::request<http::string_body> ask(http::verb::post, "/gifts", 11, "ann");
    ask.set("Idempotency-Key", "k-1");
    ask.set(http::field::authorization, "ann");
    ask.prepare_payload();
    http::write(to, ask);
    http::response<http::string_body> got;
    http::read(to, buffer, got);
    const std::string replayed(got["Idempotent-Replayed"]);
    std::printf("%u %s, replayed: %s\n", got.result_int(), got.body().c_str(), replayed.c_str());
    if (got.result_int() != 201 || replayed != (n == 0 ? "false" : "true"))
      throw std::runtime_error("this is not what the page says");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const auto db = settle::sqlite::open(std::string(argv[1]) + "/shop.db");
  settle::migrate(*db);
  auto tx = db->begin();
  tx.execute("create table gifts (buyer text not null)");
  tx.commit();
  const auto made = routes(*db);
  asio::io_context io;
  tcp::acceptor listening(io, {asio::ip::address_v4::loopback(), 0});
  std::jthread server([&] { serve(listening.accept(), made); });
  ask_twice(listening.local_endpoint());
  return db->read().execute("select count(*) from gifts")[0][0].integer() == 1 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "beast: %s\n", e.what());
  return 1;
}

// An owner that is stopped in the middle of a batch, on SQLite: there is one writer, so everybody waits for
// it.
#include <gtest/gtest.h>

#include "settle/consume.hpp"
#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#include "support/child_process.hpp"
#include "support/expect_error.hpp"
#include "support/list_broker.hpp"
#include "support/temp_dir.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

struct owner {
  owner(const std::string& path, consumer::raw_handler handler)
      : db(sqlite::open(path, {.busy_timeout = 300ms})) {
    migrate(*db);
    auto& m = broker.messages.emplace_back();
    m.id = m.key = m.payload = "1";
    m.topic = "things";
    m.type = "thing.done";
    broker.partition = "broker/things/0";
    worker = std::make_unique<consumer>(*db, broker, consumer_options{.name = "tester"});
    worker->on("things", "thing.done", std::move(handler));
  }

  std::unique_ptr<database> db;
  list_broker broker;
  std::unique_ptr<consumer> worker;
};

void ship(const message& m, transaction& tx) { tx.execute("insert into shipped values ($1)", {m.id}); }

// Proves C1
TEST(takeover, of_a_stopped_owner_names_its_process_and_goes_on_when_it_does) {
  temp_dir dir;
  const auto path = dir.file("service.db");
  child_process stopped([&] {
    owner first(path, [&](const message& m, transaction& tx) {
      tx.execute("create table shipped (what text)");
      ship(m, tx);
      ::raise(SIGSTOP);
    });
    first.worker->run_once();
    return first.worker->counts().applied == 1 ? 0 : 1;
  });
  stopped.await_stop();
  owner second(path, ship);
  const auto named = "process " + std::to_string(stopped.pid());
  for (int attempt = 0; attempt < 2; ++attempt) try {
      second.worker->run_once();
      ADD_FAILURE() << "two writers at once";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::store_busy);
      EXPECT_NE(std::string(e.what()).find(named), std::string::npos) << e.what();
    }
  EXPECT_EQ(second.worker->counts().failures, 0) << "nobody is charged";
  stopped.resume();
  EXPECT_EQ(stopped.wait(), 0);
  EXPECT_EQ(code_of([&] { second.worker->run_once(); }), std::nullopt);
  EXPECT_EQ(second.worker->counts().duplicates, 1);
  EXPECT_EQ(second.db->read().execute("select count(*) from shipped")[0][0].integer(), 1);
}

}  // namespace
}  // namespace settle::test

// What a command has done when nobody can read its output: it says so, and does not look like a call that did
// nothing.
#include <sys/stat.h>

#include <optional>
#include <thread>

#include "settle/claims.hpp"
#include "settle/sqlite.hpp"
#include "support/cli_program.hpp"

namespace settle {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using words = std::vector<std::string>;

struct cli_untold : test::cli_program {
  // The call was done, and says what on standard error.
  void expect_done(const words& arguments, const std::string& what) {
    const auto done = settle_unheard(arguments);
    EXPECT_EQ(done.code, 4) << arguments.front() << ": " << done.err;
    EXPECT_NE(done.err.find("cannot write the output: No space left on device; done before that: "),
              std::string::npos)
        << done.err;
    EXPECT_NE(done.err.find(what), std::string::npos) << done.err;
  }

  // As `settle … | true`, if the reader is gone before the program writes: it waits for the database until
  // then.
  test::outcome settle_into_closed_pipe(const words& arguments) {
    const auto pipe = dir.file("pipe");
    EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const auto db = sqlite::open(data() + "/settle.db");
    std::optional holds_the_lock(db->begin());
    const auto child = start(arguments, pipe, dir.file("call.err"));
    ::close(reader);
    holds_the_lock.reset();
    fs::remove(pipe);  // which is open by now
    return end_of(child, "call");
  }

  void in_database(const std::string& sql) {
    const auto db = sqlite::open(data() + "/settle.db");
    auto tx = db->begin();
    tx.execute(sql);
    tx.commit();
  }
};

TEST_F(cli_untold, a_committed_event_is_named_although_standard_output_is_full) {
  ASSERT_EQ(settle({"migrate"}).code, 0);
  const auto id = "01890a5d-ac96-774b-bcce-b302099a8057";
  expect_done({"publish", "orders", "order.placed", "--id", id}, id);
  EXPECT_EQ(settle_json({"status"}).at_pointer("/service/outbox/pending"), 1);
  const auto machine = settle_unheard({"publish", "orders", "order.placed", "--json"});
  EXPECT_EQ(machine.code, 4);
  const auto about = json::parse(machine.err).at("error");
  EXPECT_EQ(about.at("code"), "output_failed");
  EXPECT_EQ(about.at("retryable"), false);
  EXPECT_TRUE(about.at("done").as_string().ends_with(" was committed")) << machine.err;
}

TEST_F(cli_untold, every_command_that_acts_says_what_it_has_done) {
  expect_done({"migrate"}, "settle.db: created, schema version ");
  ASSERT_EQ(settle({"publish", "orders", "order.placed", "--key", "42"}).code, 0);
  expect_done({"relay", "--once"}, "published 1 event");
  expect_done({"backup", dir.file("monday")}, "/monday/settle.db and ");

  ASSERT_EQ(settle({"publish", "orders", "order.placed", "--key", "42"}).code, 0);
  in_database("update settle_outbox set topic = 'two' || char(10) || 'lines'");  // as no publish() would
  EXPECT_EQ(settle({"relay", "--once"}).code, 2);
  expect_done({"outbox", "requeue", "--all"}, "1 event requeued");

  const auto db = sqlite::open(data() + "/settle.db");
  const auto keys = open_claims(*db);
  const auto run =
      keys->claim({.who = {"shop", "ann", "1"}, .lease = std::chrono::milliseconds(1)}).token.run.text();
  while (unknown_claims(*db).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  expect_done({"keys", "resolve", run, "--release"}, "claim " + run + " was released");

  fs::remove_all(data());
  expect_done({"restore", dir.file("monday")}, "were restored");
}

TEST_F(cli_untold, a_command_that_only_reads_has_failed) {
  ASSERT_EQ(settle({"migrate"}).code, 0);
  const auto status = settle_unheard({"status"});
  EXPECT_EQ(status.code, 2);
  EXPECT_EQ(status.err, "settle: cannot write the output: No space left on device\n");
}

TEST_F(cli_untold, a_reader_that_has_gone_does_not_hide_what_was_done) {
  ASSERT_EQ(settle({"migrate"}).code, 0);
  const auto done = settle_into_closed_pipe({"publish", "orders", "order.placed"});
  EXPECT_EQ(done.code, 4) << done.err;
  EXPECT_NE(done.err.find("Broken pipe; done before that: the event "), std::string::npos) << done.err;
}

TEST_F(cli_untold, what_was_done_before_a_failure_is_told_with_it) {
  ASSERT_EQ(settle({"migrate"}).code, 0);
  ASSERT_EQ(settle({"publish", "orders", "order.placed", "--key", "42"}).code, 0);
  in_database("update settle_outbox set topic = 'two' || char(10) || 'lines'");
  EXPECT_EQ(settle({"relay", "--once"}).code, 2);
  const auto id = std::string(settle_json({"outbox", "failed"}).at(0).at("id").as_string());
  const auto partly = settle({"outbox", "requeue", id, "01890a5d-ac96-774b-bcce-b302099a8057"});
  EXPECT_EQ(partly.code, 2);
  EXPECT_NE(partly.err.find("; done before that: 1 event requeued\n"), std::string::npos) << partly.err;
  const auto elsewhere =
      settle({"migrate", "--database", dir.file("new.db"), "--broker", "/proc/no/broker.db"});
  EXPECT_NE(elsewhere.code, 0);
  EXPECT_NE(elsewhere.err.find("done before that: service "), std::string::npos) << elsewhere.err;
}

}  // namespace
}  // namespace settle

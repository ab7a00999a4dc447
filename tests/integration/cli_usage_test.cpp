// What the command line says to somebody who has mistyped something, and what it tells them to type next.
#include "support/cli_program.hpp"

namespace settle {
namespace {

using words = std::vector<std::string>;

struct cli_usage : test::cli_program {
  void expect_refused(const words& arguments, const std::string& message) {
    const auto done = settle(arguments);
    EXPECT_EQ(done.code, 2);
    EXPECT_EQ(done.err, "settle: " + message + "\n");
  }
};

TEST_F(cli_usage, names_the_command_that_was_probably_meant) {
  expect_refused({"stauts"}, "there is no command 'settle stauts'; did you mean status? See `settle --help`");
  expect_refused({"dlq", "lsit"},
                 "there is no command 'settle dlq lsit'; did you mean list? See `settle dlq --help`");
  expect_refused({"frobnicate"}, "there is no command 'settle frobnicate'; see `settle --help`");
  expect_refused({}, "`settle` needs a command; see `settle --help`");
  expect_refused({"dlq"}, "`settle dlq` needs a command; see `settle dlq --help`");
}

TEST_F(cli_usage, names_the_option_that_was_probably_meant_and_the_help_of_its_command) {
  expect_refused({"publish", "orders", "order.placed", "--kye", "42"},
                 "there is no option --kye; did you mean --key? See `settle publish --help`");
  expect_refused({"dlq", "replay", "--al"},
                 "there is no option --al; did you mean --all? See `settle dlq replay --help`");
  expect_refused({"status", "now"}, "'now' is more than `settle status` takes; see `settle status --help`");
  const auto missing = settle({"publish", "orders"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_TRUE(missing.err.ends_with("; see `settle publish --help`\n")) << missing.err;
  const auto wrong = settle({"tail", "orders", "--last", "many"});
  EXPECT_TRUE(wrong.err.ends_with("; see `settle tail --help`\n")) << wrong.err;
}

TEST_F(cli_usage, help_shows_the_same_pages_as_the_option) {
  const auto pages = std::vector<words>{{}, {"status"}, {"dlq"}, {"dlq", "replay"}, {"help"}};
  for (const auto& path : pages) {
    auto by_option = path, by_command = path;
    by_option.emplace_back("--help");
    by_command.insert(by_command.begin(), "help");
    const auto page = settle(by_command);
    EXPECT_EQ(page.code, 0) << page.err;
    EXPECT_EQ(page.out, settle(by_option).out);
    EXPECT_NE(page.out.find("Usage: settle"), std::string::npos) << page.out;
  }
  expect_refused({"help", "stauts"},
                 "there is no command 'settle stauts'; did you mean status? See `settle --help`");
}

TEST_F(cli_usage, hints_repeat_the_stores_that_were_given) {
  const auto shop = dir.file("my shop.db");
  ASSERT_EQ(settle({"migrate", "--database", shop}).code, 0);
  ASSERT_EQ(settle({"publish", "orders", "order.placed", "--database", shop}).code, 0);
  const auto options = " --data " + data() + " --database '" + shop + "'";
  const auto status = settle({"status", "--database", shop});
  EXPECT_NE(status.out.find("no relay is alive: run `settle relay" + options + "`"), std::string::npos)
      << status.out;
  const auto missing = settle({"dlq", "show", "7", "--database", shop});
  EXPECT_NE(missing.err.find("see `settle dlq list" + options + "`"), std::string::npos) << missing.err;
  const auto secret = settle({"keys", "resolve", "x", "--release", "--database",
                              "postgresql://shop:open-sesame@127.0.0.1:1/shop?connect_timeout=1"});
  EXPECT_EQ(secret.err.find("open-sesame"), std::string::npos) << secret.err;
}

TEST_F(cli_usage, publish_refuses_a_payload_that_is_not_what_its_content_type_says) {
  ASSERT_EQ(settle({"migrate"}).code, 0);
  const auto publish = [&](const words& more) {
    words all{"publish", "orders", "order.placed"};
    all.insert(all.end(), more.begin(), more.end());
    return settle(all);
  };
  expect_refused(
      {"publish", "orders", "order.placed", "--payload", "{\"order\":"},
      "the payload is no JSON, and its content type is application/json: mend it, or name what it is "
      "with --content-type, such as text/plain");
  EXPECT_EQ(publish({"--payload", "hello", "--content-type", "Application/Vnd.Shop+JSON"}).code, 2);
  EXPECT_EQ(publish({"--payload", "{} {}"}).code, 2);
  EXPECT_EQ(publish({"--payload", "\"\xff\""}).code, 2) << "JSON is UTF-8";
  EXPECT_EQ(publish({"--payload", "hello", "--content-type", "text/plain"}).code, 0);
  EXPECT_EQ(publish({"--payload", "[1, 2.50]"}).code, 0);
  EXPECT_EQ(publish({}).code, 0) << "no content at all";
}

TEST_F(cli_usage, publish_reads_a_payload_from_a_file_and_says_when_it_cannot) {
  ASSERT_EQ(settle({"migrate"}).code, 0);
  const auto file = dir.file("order.json");
  expect_refused({"publish", "orders", "order.placed", "--payload", "@" + file},
                 "cannot read " + file + ": No such file or directory");
  test::write_file(file, "{\"order\": 42}\n");
  ASSERT_EQ(settle({"publish", "orders", "order.placed", "--payload", "@" + file}).code, 0);
  ASSERT_EQ(settle_with_input("[43]", {"publish", "orders", "order.placed", "--payload", "@-"}).code, 0);
  ASSERT_EQ(
      settle({"publish", "orders", "order.placed", "--payload", "@@ann", "--content-type", "text/plain"})
          .code,
      0);
  ASSERT_EQ(settle({"relay", "--once"}).code, 0);
  const auto out = settle({"tail", "orders", "--json"}).out;
  EXPECT_NE(out.find("\"data\":{\"order\": 42}"), std::string::npos) << out;
  EXPECT_NE(out.find("\"data\":[43]"), std::string::npos) << out;
  EXPECT_NE(out.find("\"data\":\"@ann\""), std::string::npos) << out;
}

}  // namespace
}  // namespace settle

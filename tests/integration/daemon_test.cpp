// The daemon as an operator meets it: the real program, its answers, its log and its exit codes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <regex>

#include "daemon/api/metric_table.hpp"
#include "daemon/api/metrics_text.hpp"
#include "settle/driver/broker.hpp"
#include "settle/publish.hpp"
#include "settle/sqlite.hpp"
#include "support/child_process.hpp"
#include "support/daemon_process.hpp"
#include "support/temp_dir.hpp"

namespace settle::daemon {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using test::answer;
using test::client;
using test::content_of;
using test::eventually;
using test::get;
using test::outcome;
using test::program;
using test::request;
using test::surroundings;
using test::write_file;

class daemon : public testing::Test {
 protected:
  std::unique_ptr<program> start(const std::vector<std::string>& more = {}, const surroundings& in = {}) {
    std::vector<std::string> all{"--data", data(), "--listen", "127.0.0.1:0"};
    all.insert(all.end(), more.begin(), more.end());
    return std::make_unique<program>(SETTLED, all, dir.file("settled" + std::to_string(++started_)), in);
  }

  std::unique_ptr<program> start_ready(const std::vector<std::string>& more = {},
                                       const surroundings& in = {}) {
    auto running = start(more, in);
    EXPECT_TRUE(running->logs(" info ready ")) << running->log();
    return running;
  }

  // Runs it with exactly these arguments until it ends by itself.
  outcome run(const std::vector<std::string>& arguments, const surroundings& in = {}) {
    return program(SETTLED, arguments, dir.file("run"), in).end();
  }

  outcome run_with_file(const std::string& toml, const surroundings& in = {}) {
    write_file(dir.file("settled.toml"), toml);
    return run({"--config", dir.file("settled.toml"), "--print-config"}, in);
  }

  // Starts it where it must not start.
  void expect_refused(const std::vector<std::string>& arguments, int code, const std::string& why) {
    const auto done = run(arguments);
    EXPECT_EQ(done.code, code) << done.err;
    EXPECT_TRUE(done.err.find("settled: ") != std::string::npos) << done.err;
    EXPECT_NE(done.err.find(why), std::string::npos) << done.err;
  }

  void migrate_stores() const {
    fs::create_directory(data());
    fs::permissions(data(), fs::perms::owner_all);
    migrate(*sqlite::open(data() + "/settle.db"));
    sqlite::open_broker(data() + "/broker.db");
  }

  static std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> all;
    for (const auto& one : fs::directory_iterator(folder)) all.push_back(one.path().filename().string());
    std::ranges::sort(all);
    return all;
  }

  std::string data() const { return dir.file("data"); }

  test::temp_dir dir;

 private:
  int started_ = 0;
};

TEST_F(daemon, is_ready_within_a_second_and_answers) {
  const auto running = start_ready();
  std::smatch found;
  const auto log = running->log();
  ASSERT_TRUE(std::regex_search(log, found, std::regex(" info ready listen=.* after_ms=([0-9]+)\n"))) << log;
  EXPECT_LT(std::stoi(found[1]), 1000);
  const auto port = running->port();
  EXPECT_EQ(get(port, "/healthz").status, 200);
  const auto ready = get(port, "/readyz?verbose");
  EXPECT_EQ(ready.status, 200) << ready.body;
  EXPECT_TRUE(json::parse(ready.body).at("ready").as_bool());
  struct stat about{};
  ASSERT_EQ(::stat(data().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700U);
  EXPECT_EQ(log.find("data_folder_open"), std::string::npos);
}

// Proves O1, D7
TEST_F(daemon, relays_what_a_library_process_commits_and_counts_it) {
  const auto running = start_ready();
  {
    sqlite::open_broker(data() + "/broker.db")->subscribe({.group = "warehouse", .topics = {"orders"}});
  }
  test::child_process producer([&] {
    const auto db = sqlite::open(data() + "/settle.db");
    auto tx = db->begin();
    for (int i = 0; i < 3; ++i)
      publish(tx, event{.topic = "orders", .type = "order.placed", .key = std::to_string(i)});
    tx.commit();
    return 0;
  });
  ASSERT_EQ(producer.wait(), 0);
  std::string page;
  const auto shows = [&](const std::string& line) {
    return page.find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(eventually([&] {
    page = get(running->port(), "/metrics").body;
    // The gauges and the counters of a page are not read at one moment.
    return shows("settle_relay_published_total 3") && shows("settle_outbox_pending_events 0");
  })) << page;
  for (const auto* line :
       {"settle_broker_messages{topic=\"orders\"} 3", "settle_outbox_pending_events 0",
        "settle_broker_group_lag_messages{group=\"warehouse\",topic=\"orders\"} 3", "settle_relays_alive 1",
        "settle_outbox_oldest_pending_age_seconds 0", "settle_store_up{store=\"broker\"} 1",
        "# TYPE settle_relay_published_total counter", "# TYPE settle_outbox_pending_events gauge"})
    EXPECT_TRUE(shows(line)) << line << "\n" << page;
  EXPECT_NE(get(running->port(), "/metrics").head.find("text/plain; version=0.0.4"), std::string::npos);
}

// Proves D7
TEST_F(daemon, shows_how_many_events_wait_and_for_how_long) {
  migrate_stores();
  const auto db = sqlite::open(data() + "/settle.db");
  {
    auto tx = db->begin();
    publish(tx, event{.topic = "orders", .type = "order.placed", .key = "42"});
    tx.commit();
  }
  const auto blocking = db->begin();
  const auto running = start();
  std::string page;
  EXPECT_TRUE(eventually([&] {
    page = get(running->port(), "/metrics").body;
    return page.find("\nsettle_outbox_pending_events 1\n") != std::string::npos;
  })) << page;
  std::smatch found;
  ASSERT_TRUE(
      std::regex_search(page, found, std::regex("\nsettle_outbox_oldest_pending_age_seconds (.*)\n")));
  EXPECT_GT(std::stod(found[1]), 0.0);
}

TEST_F(daemon, is_alive_but_not_ready_while_its_relay_waits_for_the_store) {
  migrate_stores();
  const auto db = sqlite::open(data() + "/settle.db");
  auto blocking = db->begin();
  const auto running = start({"--busy-timeout", "10m"});
  const auto port = running->port();
  answer ready;
  EXPECT_TRUE(eventually([&] {
    ready = get(port, "/readyz");
    return ready.status == 503 && ready.body.find("first round") != std::string::npos;
  })) << ready.body;
  EXPECT_FALSE(json::parse(ready.body).at("ready").as_bool());
  EXPECT_EQ(json::parse(ready.body).at("reasons").as_array().size(), 1U);
  EXPECT_EQ(get(port, "/healthz").status, 200);
  blocking.rollback();
  EXPECT_TRUE(eventually([&] { return get(port, "/readyz").status == 200; }));
}

TEST_F(daemon, is_not_ready_while_a_group_that_nobody_reads_for_stops_publishing) {
  migrate_stores();
  {
    const auto broker = sqlite::open_broker(data() + "/broker.db");
    broker->subscribe({.group = "retired", .topics = {"orders"}})->leave();
    std::vector<message> batch(18);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i].id = std::to_string(i);
      batch[i].topic = "orders";
      batch[i].payload = std::string(50'000, 'x');
    }
    broker->publishing().publish(batch);
  }
  const auto running = start({"--broker-bytes-max", "1MiB"});
  const auto port = running->port();
  answer ready;
  EXPECT_TRUE(eventually([&] {
    ready = get(port, "/readyz");
    return ready.body.find("group retired has messages of orders to read and no member") != std::string::npos;
  })) << ready.body;
  EXPECT_EQ(ready.status, 503);
  const auto removed =
      program(SETTLE_CLI, {"group", "remove", "retired", "--yes", "--data", data()}, dir.file("remove"), {})
          .end();
  EXPECT_EQ(removed.code, 0) << removed.err;
  EXPECT_TRUE(eventually([&] { return get(port, "/readyz").status == 200; }))
      << "the file is as full, but nobody is in the way: " << get(port, "/readyz").body;
}

TEST_F(daemon, answers_what_it_does_not_serve_with_a_problem) {
  const auto running = start_ready();
  const auto port = running->port();
  const auto expect = [](const answer& got, int status) {
    EXPECT_EQ(got.status, status) << got.head;
    EXPECT_NE(got.head.find("application/problem+json"), std::string::npos) << got.head;
    const auto body = json::parse(got.body);
    EXPECT_EQ(body.at("status").as_int64(), status);
    EXPECT_FALSE(body.at("title").as_string().empty());
  };
  expect(get(port, "/"), 404);
  expect(get(port, "/healthz/x"), 404);
  const auto post = request(port, "POST /readyz");
  expect(post, 405);
  EXPECT_NE(post.head.find("Allow: GET, HEAD"), std::string::npos);
  expect(request(port, "NONSENSE"), 400);
  expect(request(port, "GET /healthz", "X: " + std::string(9000, 'a') + "\r\n"), 431);
  expect(request(port, "POST /healthz", "Content-Length: 100000\r\n"), 413);
  const auto head = request(port, "HEAD /healthz");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
}

TEST_F(daemon, closes_silent_clients_and_those_beyond_its_limit) {
  const auto running = start_ready({"--http-connections-max", "2", "--http-timeout", "100ms"});
  const auto port = running->port();
  const client slow(port);
  slow.send("GET /hea");
  EXPECT_TRUE(slow.rest().starts_with("HTTP/1.1 408 ")) << "closed after the time limit";
  running->end(SIGTERM);
  const auto patient = start_ready({"--http-connections-max", "1"});
  const client first(patient->port());
  first.send("POST /v1/keys/claim HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{");
  const client second(patient->port());
  EXPECT_TRUE(second.rest().starts_with("HTTP/1.1 503 "));
  first.send("}");
  EXPECT_NE(first.rest().find("service is missing"), std::string::npos);
  EXPECT_TRUE(eventually([&] {
    return std::regex_search(get(patient->port(), "/metrics").body,
                             std::regex("settle_http_refused_connections_total [1-9]"));
  }));
}

// Proves O1
TEST_F(daemon, ends_with_0_on_sigterm_and_gives_its_lease_back) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto running = start_ready();
    const auto done = running->end(signal);
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(done.out, "");
    EXPECT_NE(done.err.find(" info stopping signal="), std::string::npos) << done.err;
    EXPECT_NE(done.err.find(" info stopped "), std::string::npos) << done.err;
    const auto db = sqlite::open(data() + "/settle.db");
    EXPECT_EQ(db->read().execute("select count(*) from settle_members")[0][0].integer(), 0);
  }
}

TEST_F(daemon, cancels_after_the_drain_timeout_when_another_process_blocks_the_store) {
  const auto running = start_ready({"--drain-timeout", "100ms", "--busy-timeout", "500ms"});
  const auto db = sqlite::open(data() + "/settle.db");
  const auto blocking = db->begin();
  const auto done = running->end(SIGTERM);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.err.find(" warning drain_cancelled "), std::string::npos) << done.err;
}

TEST_F(daemon, leaves_the_folder_to_the_first_of_two) {
  auto first = start_ready();
  const auto refused = run({"--data", data(), "--listen", "127.0.0.1:0"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("(pid " + std::to_string(first->pid()) + ")"), std::string::npos) << refused.err;
  EXPECT_EQ(get(first->port(), "/readyz").status, 200);
  first->end(SIGKILL);
  EXPECT_EQ(start_ready()->end(SIGTERM).code, 0) << "the lock ends with its process";
}

TEST_F(daemon, does_not_start_on_an_address_in_use) {
  const auto first = start_ready();
  const auto at = "127.0.0.1:" + std::to_string(first->port());
  expect_refused({"--data", dir.file("other"), "--listen", at}, 2, "cannot listen on " + at);
  EXPECT_FALSE(fs::exists(dir.file("other"))) << "it leaves no folder behind";
  fs::create_directory(dir.file("another"));
  expect_refused({"--data", dir.file("another"), "--listen", at}, 2, "cannot listen on " + at);
  EXPECT_TRUE(fs::is_empty(dir.file("another"))) << "nor anything in one that was there";
}

TEST_F(daemon, tells_systemd_when_it_is_ready_and_when_it_stops) {
  const auto path = dir.file("notify");
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  const timeval limit{20, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const auto next = [&] {
    char buffer[64];
    const auto got = ::recv(fd, buffer, sizeof buffer, 0);
    return std::string(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
  };
  const auto running = start({}, {.variables = {"NOTIFY_SOCKET=" + path}});
  EXPECT_EQ(next(), "READY=1");
  EXPECT_EQ(running->end(SIGTERM).code, 0);
  EXPECT_EQ(next(), "STOPPING=1");
  ::close(fd);
}

TEST_F(daemon, does_not_start_in_a_folder_that_it_cannot_use) {
  expect_refused({"--data", dir.file("no/such")}, 2, "its parent folder is not there");
  write_file(dir.file("file"), "");
  expect_refused({"--data", dir.file("file")}, 2, "is not a folder");
  fs::create_directories(data() + "/settle.db");
  expect_refused({"--data", data(), "--listen", "127.0.0.1:0"}, 3, "store_unavailable");
}

TEST_F(daemon, does_not_start_where_its_user_cannot_write) {
  constexpr uid_t nobody = 65534;
  const bool root = ::getuid() == 0;
  fs::permissions(dir.path(), fs::perms(0755));
  fs::create_directory(data());
  fs::permissions(data(), fs::perms(0555));
  const auto done = run({"--data", data()}, {.as = root ? nobody : 0});
  if (done.code == 127) GTEST_SKIP() << "the program cannot be started as another user";
  EXPECT_EQ(done.code, 2);
  EXPECT_NE(done.err.find("is not writable for this user"), std::string::npos) << done.err;
  const auto parent = run({"--data", data() + "/below"}, {.as = root ? nobody : 0});
  EXPECT_EQ(parent.code, 2);
  EXPECT_NE(parent.err.find("cannot be created: Permission denied"), std::string::npos) << parent.err;
}

TEST_F(daemon, warns_if_others_may_look_into_its_folder) {
  fs::create_directory(data());
  fs::permissions(data(), fs::perms(0755));
  EXPECT_TRUE(start_ready()->logs(" warning data_folder_open "));
}

TEST_F(daemon, does_not_start_on_a_database_of_a_newer_version) {
  migrate_stores();
  {
    const auto db = sqlite::open(data() + "/settle.db");
    auto tx = db->begin();
    tx.execute("insert into settle_migrations select 999, 'future', 'x', 0");
    tx.commit();
  }
  expect_refused({"--data", data(), "--listen", "127.0.0.1:0"}, 2, "schema_newer");
}

TEST_F(daemon, does_not_start_on_a_file_that_is_no_database) {
  fs::create_directory(data());
  write_file(data() + "/settle.db", std::string(8192, 'x'));
  expect_refused({"--data", data(), "--listen", "127.0.0.1:0"}, 2, "store_corrupt");
  EXPECT_EQ(names_in(data()), std::vector<std::string>{"settle.db"}) << "and leaves nothing beside it";
  EXPECT_EQ(content_of(data() + "/settle.db"), std::string(8192, 'x'));
  fs::create_directory(dir.file("notes"));
  write_file(dir.file("notes/todo.txt"), "buy milk\n");
  expect_refused(
      {"--data", dir.file("other"), "--database", dir.file("notes/todo.txt"), "--listen", "127.0.0.1:0"}, 2,
      "store_corrupt");
  EXPECT_EQ(names_in(dir.file("notes")), std::vector<std::string>{"todo.txt"});
  EXPECT_FALSE(fs::exists(dir.file("other")));
  fs::create_directory(dir.file("notes/folder"));
  expect_refused(
      {"--data", dir.file("other"), "--database", dir.file("notes/folder"), "--listen", "127.0.0.1:0"}, 3,
      "store_unavailable");
  EXPECT_EQ(names_in(dir.file("notes")), (std::vector<std::string>{"folder", "todo.txt"}));
}

TEST_F(daemon, names_line_and_nearest_key_of_what_is_wrong_in_its_file) {
  const auto expect = [&](const std::string& toml, const std::string& why) {
    const auto done = run_with_file(toml);
    EXPECT_EQ(done.code, 2) << toml;
    EXPECT_NE(done.err.find("settled: " + dir.file("settled.toml") + why), std::string::npos) << done.err;
  };
  expect("\n[relay]\nbatch_mx = 5\n", ":3: unknown key 'relay.batch_mx'; did you mean 'relay.batch_max'?");
  expect("lisen = \"127.0.0.1:1\"\n", ":1: unknown key 'lisen'; did you mean 'listen'?");
  expect("idle_poll = \"1s\"\n", ":1: unknown key 'idle_poll'; did you mean 'relay.idle_poll'?");
  expect("[relay]\nbatch_max = 0\n", ":2: relay.batch_max must be 1 to 10,000 events, got '0'");
  expect("drain_timeout = \"2h\"\n", ":1: drain_timeout must be 0s to 1h, got '2h'");
  expect("drain_timeout = \"10\"\n", ":1: drain_timeout must be a whole number and a unit");
  expect("drain_timeout = 10\n", ":1: drain_timeout is written in quotes");
  expect("relay.batch_max = \"5\"\n", ":1: relay.batch_max is written without quotes");
  expect("relay.batch_max = [5]\n", ":1: relay.batch_max must be a text in quotes or a whole number");
  expect("log_level = \"loud\"\n", ":1: log_level must be debug, info, warning or error, got 'loud'");
  expect("listen = \"example.com:80\"\n", ":1: listen must be ADDRESS:PORT");
  expect("data = \"\"\n", ":1: data must be text of 1 to 4,000 bytes");
  expect("\ndata = \n", ":2: ");
  const auto both = run_with_file("nope = 1\nlisten = \"x\"\n");
  EXPECT_EQ(std::count(both.err.begin(), both.err.end(), '\n'), 2) << both.err;
}

TEST_F(daemon, listens_on_localhost) {
  const auto running = std::make_unique<program>(
      SETTLED, std::vector<std::string>{"--data", data(), "--listen", "localhost:0"}, dir.file("named"),
      surroundings{});
  EXPECT_TRUE(running->logs(" info ready listen=127.0.0.1:")) << running->log();
  EXPECT_EQ(running->log().find("listening_beyond_loopback"), std::string::npos);
  EXPECT_EQ(get(running->port(), "/healthz").status, 200);
  expect_refused({"--listen", "localhost.example:8600"}, 2, "or localhost:8600");
}

TEST_F(daemon, refuses_flags_and_variables_that_make_no_sense) {
  expect_refused({"--listen", "127.0.0.1"}, 2, "--listen: listen must be ADDRESS:PORT");
  expect_refused({"--listen", "127.0.0.1:70000"}, 2, "--listen: listen must be");
  expect_refused({"--relay-batch-mx", "5"}, 2,
                 "no flag '--relay-batch-mx'; did you mean '--relay-batch-max'?");
  expect_refused({"--relay-batch-max", "99999"}, 2, "--relay-batch-max: relay.batch_max must be 1 to 10,000");
  expect_refused({"somewhere"}, 2, "unexpected argument 'somewhere'");
  expect_refused({"--data"}, 2, "--data");
  expect_refused({"--config", dir.file("missing")}, 2, "cannot read the configuration file");
  const auto variable = run({"--print-config"}, {.variables = {"SETTLE_RELAY_LEASE_TTL=1ms"}});
  EXPECT_EQ(variable.code, 2);
  EXPECT_NE(variable.err.find("SETTLE_RELAY_LEASE_TTL: relay.lease_ttl must be 50ms to 1h, got '1ms'"),
            std::string::npos)
      << variable.err;
  const auto running = start_ready({}, {.variables = {"SETTLE_LISTNE=x", "SETTLE_PORT=tcp://10.0.0.1:80"}});
  EXPECT_TRUE(running->logs("SETTLE_LISTNE is not a setting; did you mean SETTLE_LISTEN?"));
  EXPECT_EQ(running->log().find("SETTLE_PORT"), std::string::npos) << "Kubernetes sets such variables";
}

TEST_F(daemon, prefers_flags_to_variables_to_the_file_to_defaults) {
  const auto file = dir.file("settled.toml");
  write_file(
      file,
      "data = \"from-file\"\nlisten = \"127.0.0.1:1\"\n[relay]\nbatch_max = 7\nbatch_bytes_max = 2048\n");
  const auto done = run({"--print-config", "--data", "from-flag"},
                        {.variables = {"SETTLE_CONFIG=" + file, "SETTLE_DATA=from-variable",
                                       "SETTLE_LISTEN=127.0.0.1:2", "SETTLE_LOG_LEVEL="}});
  ASSERT_EQ(done.code, 0) << done.err;
  const auto has = [&](const std::string& setting, const std::string& origin) {
    const std::regex line("(^|\n)" + setting + " +# " + origin + "\n");
    EXPECT_TRUE(std::regex_search(done.out, line)) << setting << "\n" << done.out;
  };
  has("data = \"from-flag\"", "--data");
  has("listen = \"127.0.0.1:2\"", "SETTLE_LISTEN");
  has("batch_max = 7", file + ":4");
  has("batch_bytes_max = \"2KiB\"", file + ":5");
  has("log_level = \"info\"", "default");
  EXPECT_EQ(run_with_file(done.out).code, 0) << "what it prints is a file that it reads";
}

TEST_F(daemon, prints_the_reference_pages_that_are_committed) {
  const auto docs = std::string(SETTLE_SOURCE) + "/docs/reference/";
  EXPECT_EQ(run({"--print-config-reference"}).out, content_of(docs + "configuration.md"))
      << "settled --print-config-reference > docs/reference/configuration.md";
  EXPECT_EQ(run({"--print-metrics-reference"}).out, content_of(docs + "metrics.md"))
      << "settled --print-metrics-reference > docs/reference/metrics.md";
}

// One series of everything in the table, with a value for each label.
std::string every_metric() {
  std::map<std::string, std::int64_t> counters;
  std::map<std::string, double> gauges;
  std::map<std::string, time_counts> times;
  time_counts some;
  for (const auto us : {70, 7'000, 70'000'000}) some.add(duration(us));
  for (const auto& one : all_metrics()) {
    std::string series(one.name);
    if (!one.labels.empty())
      series +=
          "{" + std::regex_replace(std::string(one.labels), std::regex("[a-z]+"), "$&=\"a \\\"b\\\"\"") + "}";
    if (one.type == metric_type::counter) counters[series] = 7;
    if (one.type == metric_type::gauge) gauges[series] = 0.5;
    if (one.type == metric_type::histogram) times[series] = some;
  }
  counters["settle_unheard_of"] = 1;
  const metric_source all{.counters = counters, .gauges = gauges, .times = times};
  return metrics_text({&all, 1});
}

// Proves D7
TEST_F(daemon, shows_metrics_that_promtool_finds_nothing_wrong_with) {
  const auto* const ci = std::getenv("CI");
  const std::string promtool = "/usr/bin/promtool";
  if (!fs::exists(promtool)) {
    ASSERT_NE(std::string(ci == nullptr ? "" : ci), "true")
        << "promtool is missing; tools/setup promtool installs it";
    GTEST_SKIP() << "promtool is missing; tools/setup promtool installs it";
  }
  const auto running = start_ready();
  get(running->port(), "/readyz");
  ASSERT_TRUE(eventually([&] {
    return get(running->port(), "/metrics")
               .body.find("settle_http_request_seconds_bucket{route=\"/readyz\"") != std::string::npos;
  }));
  for (const auto& page : {get(running->port(), "/metrics").body, every_metric()}) {
    write_file(dir.file("metrics.txt"), page);
    const auto done =
        program("/bin/sh", {"-c", promtool + " check metrics < " + dir.file("metrics.txt") + " 2>&1"},
                dir.file("promtool"), {})
            .end();
    EXPECT_EQ(done.code, 0) << done.out << done.err << page;
    EXPECT_EQ(done.out, "");
  }
}

TEST_F(daemon, is_what_settle_serve_starts) {
  const auto folder = fs::path(SETTLED).parent_path().string();
  program serving(SETTLE_CLI, {"--data", data(), "serve", "--listen", "127.0.0.1:0"}, dir.file("serve"),
                  {.variables = {"PATH=" + folder}});
  EXPECT_TRUE(serving.logs(" info ready ")) << serving.log();
  EXPECT_EQ(get(serving.port(), "/readyz").status, 200);
  EXPECT_EQ(serving.end(SIGTERM).code, 0);
  EXPECT_TRUE(fs::exists(data() + "/settle.db"));
  fs::copy_file(SETTLE_CLI, dir.file("settle"));
  const auto alone =
      program(dir.file("settle"), {"serve"}, dir.file("alone"), {.variables = {"PATH=/nowhere"}}).end();
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("settle: there is no program settled"), std::string::npos) << alone.err;
}

}  // namespace
}  // namespace settle::daemon

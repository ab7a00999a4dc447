// When memory runs out: whoever asks is told 503, and everything goes on; or the daemon ends with one line.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/batcher.hpp"
#include "base/timer.hpp"
#include "daemon/api/keys.hpp"
#include "http/workers.hpp"
#include "settle/claims.hpp"
#include "settle/http_server.hpp"
#include "settle/metrics.hpp"
#include "settle/service.hpp"
#include "settle/sqlite.hpp"
#include "support/daemon_process.hpp"
#include "support/failing_memory.hpp"
#include "support/http_world.hpp"
#include "support/raw_http.hpp"
#include "support/temp_dir.hpp"

namespace settle {
namespace {

using namespace std::chrono_literals;
using test::failing_memory;
namespace json = boost::json;

// Counts what it is told, and needs no memory for it.
struct counting_log final : log_sink {
  bool enabled(log_level) const override { return true; }
  void write(log_level, std::string_view, std::initializer_list<log_field>) override { ++lines; }
  std::atomic<int> lines = 0;
};

class out_of_memory : public ::testing::Test {
 protected:
  out_of_memory() { failing_memory::spared() = true; }
  ~out_of_memory() override { failing_memory::spared() = false; }

  counting_log log;
  metrics counters;
  environment env{.log = &log, .counters = &counters};
};

// Keys in a file, served over HTTP, and two routes beside them.
class out_of_memory_in_a_server : public out_of_memory {
 protected:
  void SetUp() override {
    db = sqlite::open(dir.file("service.db"), {.env = env});
    migrate(*db);
    keys = open_claims(*db);
    http::router routes;
    daemon::add_key_routes(routes, [this]() -> claims& { return *keys; });
    const auto echo = [](const http::request& asked) { return http::text(200, "text/plain", asked.body); };
    routes.post("/quick", echo, {.quick = true}).post("/slow", echo);
    routes.post("/group", echo, {.workers = std::make_shared<http::worker_group>()});
    server.emplace(std::move(routes), http::server_options{.worker_threads = 2, .env = env});
  }

  test::raw_answer ask(const std::string& path, const std::string& body) const {
    test::raw_http client(server->port(), 5);
    return client.ask(test::post_of(path, body));
  }

  static std::string claim_of(const std::string& key) {
    return json::serialize(json::object{{"service", "shop"}, {"caller", "ann"}, {"key", key}});
  }

  // Fails every allocation of a request in turn, alone or with all that follow.
  void fail_each_allocation(const std::string& path, std::int64_t times) {
    for (std::int64_t n = 0;; ++n) {
      const auto key = "k-" + std::to_string(times > 1 ? -n - 1 : n);
      const auto body = path.starts_with("/v1") ? claim_of(key) : std::string(6000, 'x');
      bool struck = false;
      test::raw_answer got;
      {
        const failing_memory none(n, times);
        got = ask(path, body);
        struck = failing_memory::struck();
      }
      ASSERT_TRUE(got.status == 200 || got.status == 503)
          << path << ": allocation " << n << " of many: " << got.status;
      const auto after = ask(path, path.starts_with("/v1") ? claim_of(key + " again") : body);
      ASSERT_EQ(after.status, 200) << path << ": after allocation " << n << ": " << after.body;
      if (!struck) {
        EXPECT_GT(n, 5) << "it has been counted";
        return;
      }
    }
  }

  test::temp_dir dir;
  std::unique_ptr<database> db;
  std::unique_ptr<claims> keys;
  std::optional<http::server> server;
};

TEST_F(out_of_memory_in_a_server, every_allocation_of_a_request_may_fail_alone) {
  for (const auto* path : {"/quick", "/slow", "/group", "/v1/keys/claim"}) fail_each_allocation(path, 1);
}

TEST_F(out_of_memory_in_a_server, every_allocation_of_a_request_may_be_the_first_of_many_that_fail) {
  for (const auto* path : {"/quick", "/slow", "/group", "/v1/keys/claim"})
    fail_each_allocation(path, failing_memory::for_good);
}

// Jobs that wait at a gate, given to workers by the test itself.
class out_of_memory_in_workers : public out_of_memory {
 protected:
  out_of_memory_in_workers() {
    routes.get("/gate", [this](const http::request&) {
      gate.pass();
      return http::response{};
    });
  }

  std::shared_ptr<http::job> job_for_gate() {
    auto made = std::make_shared<http::job>();
    made->asked.method = "GET";
    made->asked.path = "/gate";
    EXPECT_FALSE(routes.routes().find(made->asked, made->to));
    made->from = &source;
    return made;
  }

  // Gives a job while the first allocation of that fails, which is a thread's.
  bool give_without_a_thread(http::workers& to) {
    auto made = job_for_gate();
    failing_memory::spared() = false;
    bool taken = false;
    try {
      const failing_memory none(0, 1);
      taken = !to.give(std::move(made));
    } catch (const std::bad_alloc&) {  // not taken
    }
    failing_memory::spared() = true;
    return taken;
  }

  test::gate gate;
  http::router routes;
  http::job_source source{env, [] {}};
};

TEST_F(out_of_memory_in_workers, a_thread_that_cannot_start_is_a_refusal_if_there_is_no_other) {
  http::workers pool({.threads = 2});
  EXPECT_FALSE(give_without_a_thread(pool));
  EXPECT_EQ(pool.threads_started(), 0U);
  EXPECT_FALSE(pool.give(job_for_gate()));
  ASSERT_TRUE(gate.wait_for(1));
  EXPECT_TRUE(give_without_a_thread(pool)) << "the one that runs will do it";
  EXPECT_EQ(pool.threads_started(), 1U);
  EXPECT_EQ(pool.waiting(), 1U);
  gate.open();
  source.wait_for_all(0);
  EXPECT_EQ(source.take_answered().size(), 2U);
}

struct busy_service final : service {
  explicit busy_service(const environment& in) : env_(in) {}
  std::string_view name() const override { return "busy"; }
  const environment& env() const override { return env_; }
  bool run_once(std::stop_token) override {
    const std::string work(1000, 'x');
    ++rounds;
    return false;
  }
  wakeup& arrivals() override { return bell; }
  duration idle_wait() const override { return 1ms; }

  environment env_;
  timer bell;
  std::atomic<int> rounds = 0;
};

TEST_F(out_of_memory, a_background_service_goes_on_when_there_is_some_again) {
  busy_service work(env);
  background loop(work);
  ASSERT_TRUE(test::eventually([&] { return work.rounds > 2; }));
  {
    const failing_memory none(0, failing_memory::for_good);
    ASSERT_TRUE(test::eventually([&] { return failing_memory::struck(); }));
    std::this_thread::sleep_for(50ms);
  }
  const int before = work.rounds;
  EXPECT_TRUE(test::eventually([&] { return work.rounds > before + 2; }));
  EXPECT_TRUE(test::eventually([&] { return log.lines > 0; })) << "that it goes on";
}

TEST_F(out_of_memory, callers_of_a_batcher_are_told_and_none_is_forgotten) {
  batcher<std::string, int> lengths(
      [](std::span<const std::string> all) {
        std::vector<int> found;
        for (const auto& one : all) found.push_back(static_cast<int>(one.size()));
        return found;
      },
      {.batch_max = 4, .queue_max = 1000});
  const std::string item(100, 'x');
  std::atomic<int> told = 0, failed = 0;
  for (std::int64_t n = 0; n < 60; ++n) {
    const failing_memory none(n, n % 2 == 0 ? 1 : 40);
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 4; ++caller)
      callers.emplace_back([&] {
        for (int i = 0; i < 5; ++i) {
          try {
            told += lengths.call(item) == 100 ? 1 : 0;
          } catch (const std::bad_alloc&) {
            ++failed;
          }
        }
      });
  }
  EXPECT_EQ(told + failed, 60 * 4 * 5);
  EXPECT_GT(failed, 0);
  EXPECT_EQ(lengths.waiting_count(), 0u);
}

// Requests with large answers from many clients, for a while. Counts what came back by status; 0 is nothing.
std::map<int, int> load(int port) {
  std::mutex mutex;
  std::map<int, int> seen;
  std::vector<std::jthread> clients;
  const auto until = std::chrono::steady_clock::now() + 1500ms;
  for (int n = 0; n < 48; ++n)
    clients.emplace_back([&, n] {
      const std::string big(1'000'000, static_cast<char>('a' + n % 26));
      for (int i = 0; std::chrono::steady_clock::now() < until; ++i) {
        json::object asked{
            {"service", "shop"}, {"caller", "ann"}, {"key", std::to_string(n) + "-" + std::to_string(i)}};
        asked["token"] = "018f4e4e-0000-7000-8000-000000000001";
        asked["answer"] = json::object{{"status", 201}, {"body", big}};
        test::raw_http client(static_cast<std::uint16_t>(port), 5);
        const auto got = client.ask(test::post_of("/v1/keys/complete", json::serialize(asked)));
        const std::scoped_lock lock(mutex);
        ++seen[got.status];
      }
    });
  clients.clear();
  return seen;
}

TEST(out_of_memory_daemon, answers_503_and_goes_on_or_ends_with_one_line) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need the whole address space";
#endif
  int served = 0;
  for (const int mebibytes : {50, 60, 70, 80, 90, 100, 120, 160, 220}) {
    const test::temp_dir dir;
    test::program settled("/bin/sh",
                          {"-c", "ulimit -v " + std::to_string(mebibytes * 1024) + " && exec \"$0\" \"$@\"",
                           SETTLED, "--data", dir.file("data"), "--listen", "127.0.0.1:0"},
                          dir.file("settled"), {});
    const auto ends_well = [&] {
      siginfo_t how{};
      if (::waitid(P_PID, static_cast<id_t>(settled.pid()), &how, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          how.si_pid == 0)
        return false;
      const auto done = settled.end();
      const auto last = done.err.rfind("settled: ");
      const bool so = done.code >= 2 && done.code <= 4 && last != std::string::npos &&
                      done.err.find('\n', last) == done.err.size() - 1;
      EXPECT_TRUE(so) << mebibytes << " MiB: " << done.code << "\n" << done.err;
      return true;
    };
    const auto is_up = [&] { return settled.log().find(" info ready ") != std::string::npos; };
    bool over = false;
    ASSERT_TRUE(test::eventually([&] { return is_up() || (over = ends_well()); })) << mebibytes << " MiB\n"
                                                                                   << settled.log();
    if (over) continue;
    const auto seen = load(settled.port());
    if (ends_well()) continue;
    ++served;
    for (const auto& [status, times] : seen)
      EXPECT_TRUE(status == 409 || status == 503 || status == 0)
          << mebibytes << " MiB: " << status << " × " << times;
    EXPECT_TRUE(test::eventually([&] { return test::get(settled.port(), "/healthz").status == 200; }))
        << mebibytes;
    // What the allocator keeps for itself may leave too little for the stores. Then it says so.
    const auto ready = test::get(settled.port(), "/readyz").status;
    EXPECT_TRUE(ready == 200 || ready == 503) << mebibytes << " MiB: " << ready << settled.log();
    const auto ended = settled.end(SIGTERM);
    EXPECT_EQ(ended.code, 0) << mebibytes << " MiB\n" << ended.err;
  }
  EXPECT_GT(served, 0) << "some of them is enough to start with";
}

}  // namespace
}  // namespace settle

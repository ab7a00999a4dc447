// Routes that are replaced while a server serves.
#include <array>
#include <future>
#include <vector>

#include "support/http_world.hpp"

namespace settle {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::get_of;
using test::post_of;
using test::raw_http;

class http_replace : public test::http_world {
 protected:
  using token = std::shared_ptr<const int>;

  static http::handler says(const std::string& text) {
    return [text](const http::request&) { return http::text(200, "text/plain", text); };
  }

  http::handler says_at_the_gate(const std::string& text, token owned = {}) {
    return [this, text, owned](const http::request&) {
      gate_.pass();
      return http::text(200, "text/plain", text + (owned ? std::to_string(*owned) : ""));
    };
  }

  http::batch_handler says_together(const std::string& text) {
    return [this, text](std::span<const http::request* const> asked) {
      gate_.pass();
      return std::vector<http::response>(asked.size(),
                                         http::text(200, "text/plain", text + std::to_string(asked.size())));
    };
  }

  void serve(http::router routes, http::server_options options = {}) {
    options.env.log = &log_;
    options.env.counters = &counters_;
    server_.emplace(std::move(routes), options);
  }

  std::int64_t counted(std::string_view route, std::int64_t at_least, std::string_view method = "GET") {
    return eventually_counted("settle_http_requests_total",
                              {{"route", route}, {"method", method}, {"status", "2xx"}}, at_least);
  }
};

TEST_F(http_replace, lets_a_request_under_way_have_the_old_answer_and_the_next_one_the_new) {
  http::router before, after;
  before.get("/slow", says_at_the_gate("old"));
  after.get("/slow", says("new"));
  serve(std::move(before));
  auto slow = connect(), other = connect();
  slow.send(get_of("/slow"));
  ASSERT_TRUE(gate_.wait_for(1));
  server_->replace(std::move(after));
  EXPECT_EQ(other.ask(get_of("/slow")).body, "new");
  gate_.open();
  EXPECT_EQ(slow.answer().body, "old");
  EXPECT_EQ(slow.ask(get_of("/slow")).body, "new") << "on the connection that was kept";
}

TEST_F(http_replace, takes_routes_away_and_adds_others) {
  http::router before, after;
  before.get("/removed", says("removed")).get("/kept", says("kept")).post("/kept", says("posted"));
  after.get("/kept", says("kept, and new")).get("/added/{id}", says("added"), {.quick = true});
  serve(std::move(before));
  auto client = connect();
  EXPECT_EQ(client.ask(get_of("/removed")).status, 200);
  EXPECT_EQ(client.ask(get_of("/added/7")).status, 404);
  server_->replace(std::move(after));
  EXPECT_EQ(client.ask(get_of("/removed")).status, 404);
  EXPECT_EQ(client.ask(get_of("/added/7")).body, "added");
  EXPECT_EQ(client.ask(get_of("/kept")).body, "kept, and new");
  EXPECT_EQ(client.ask(post_of("/kept", "x")).status, 405);
}

TEST_F(http_replace, lets_a_request_whose_headers_have_come_end_as_it_began) {
  http::router before, after;
  before.post("/orders", says("old")).get("/seen", says("seen"));
  after.get("/seen", says("seen"));
  serve(std::move(before));
  auto client = connect(), other = connect();
  client.send("POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
  EXPECT_EQ(other.ask(get_of("/seen")).status, 200) << "so the first has been read";
  server_->replace(std::move(after));
  EXPECT_EQ(other.ask(get_of("/seen")).status, 200);
  client.send("cd");
  EXPECT_EQ(client.answer().body, "old");
  EXPECT_EQ(client.ask(post_of("/orders", "x")).status, 404);
}

TEST_F(http_replace, serves_old_batches_to_their_end_beside_the_new_ones) {
  http::router before, after;
  before.post_batched({"/batched"}, says_together("old"), {.batch_max = 4});
  after.post_batched({"/batched"}, says_together("new"), {.batch_max = 2});
  before.get("/quick", says("quick"), {.quick = true});
  after.get("/quick", says("quick"), {.quick = true});
  serve(std::move(before), {.worker_threads = 2});
  std::vector<raw_http> clients;
  const auto send = [&](int count) {
    for (int n = 0; n < count; ++n) {
      clients.push_back(connect());
      EXPECT_EQ(clients.back().ask(get_of("/quick")).status, 200);
      clients.back().send(post_of("/batched", "x"));
    }
    EXPECT_EQ(connect().ask(get_of("/quick")).status, 200) << "so they have been read";
  };
  send(1);
  ASSERT_TRUE(gate_.wait_for(1));
  send(3);
  server_->replace(std::move(after));
  send(1);
  ASSERT_TRUE(gate_.wait_for(2)) << "the new line does not wait for the old one";
  send(2);
  gate_.open();
  const std::array<const char*, 7> expected{"old1", "old3", "old3", "old3", "new1", "new2", "new2"};
  for (std::size_t n = 0; n < expected.size(); ++n) EXPECT_EQ(clients[n].answer().body, expected[n]) << n;
}

TEST_F(http_replace, keeps_what_handlers_own_until_the_last_request_is_answered) {
  auto owned = std::make_shared<const int>(7);
  const std::weak_ptr<const int> seen = owned;
  http::router before;
  before.get("/slow", says_at_the_gate("owned ", std::move(owned)));
  serve(std::move(before));
  auto slow = connect();
  slow.send(get_of("/slow"));
  ASSERT_TRUE(gate_.wait_for(1));
  server_->replace({});
  EXPECT_EQ(connect().ask(get_of("/slow")).status, 404);
  EXPECT_FALSE(seen.expired());
  gate_.open();
  EXPECT_EQ(slow.answer().body, "owned 7");
  EXPECT_TRUE(eventually([&] { return seen.expired(); })) << "though the connection is still open";
}

TEST_F(http_replace, keeps_what_a_handler_owns_that_runs_on_after_its_time) {
  auto owned = std::make_shared<const int>(7);
  const std::weak_ptr<const int> seen = owned;
  http::router before;
  before.get("/slow", says_at_the_gate("owned ", std::move(owned)));
  serve(std::move(before), {.handler_time_max = milliseconds(20)});
  auto slow = connect();
  EXPECT_EQ(slow.ask(get_of("/slow")).status, 503);
  server_->replace({});
  EXPECT_EQ(connect().ask(get_of("/slow")).status, 404);
  EXPECT_FALSE(seen.expired()) << "the handler still uses it";
  gate_.open();
  EXPECT_TRUE(eventually([&] { return seen.expired(); }));
}

TEST_F(http_replace, lets_go_of_the_old_routes_although_nobody_asks) {
  auto owned = std::make_shared<const int>(7);
  const std::weak_ptr<const int> seen = owned;
  http::router before;
  before.get("/never", says_at_the_gate("", std::move(owned)));
  serve(std::move(before));
  server_->replace({});
  EXPECT_TRUE(eventually([&] { return seen.expired(); }));
}

TEST_F(http_replace, goes_on_while_what_old_handlers_own_takes_long_to_end) {
  http::router before, after;
  std::shared_ptr<int> slow_to_end(new int(0), [this](const int* one) {
    gate_.pass();
    delete one;
  });
  before.get("/own", [slow_to_end](const http::request&) { return http::text(200, "text/plain", "old"); });
  after.get("/own", says("new")).get("/quick", says("quick"), {.quick = true});
  serve(std::move(before));
  EXPECT_EQ(connect().ask(get_of("/own")).body, "old");
  slow_to_end.reset();
  server_->replace(std::move(after));
  ASSERT_TRUE(gate_.wait_for(1)) << "the old routes are being destroyed";
  EXPECT_EQ(connect().ask(get_of("/quick")).body, "quick");
  EXPECT_EQ(connect().ask(get_of("/own")).body, "new");
  gate_.open();
}

TEST_F(http_replace, may_be_asked_for_by_handlers) {
  http::router first;
  first.get("/worker", [this](const http::request&) {
    http::router next;
    next.get("/quick",
             [this](const http::request&) {
               http::router last;
               last.get("/last", says("last"));
               server_->replace(std::move(last));
               return http::text(200, "text/plain", "quick");
             },
             {.quick = true});
    server_->replace(std::move(next));
    return http::text(200, "text/plain", "worker");
  });
  serve(std::move(first));
  auto client = connect();
  client.send(get_of("/worker") + get_of("/quick") + get_of("/last") + get_of("/worker"));
  EXPECT_EQ(client.answer().body, "worker");
  EXPECT_EQ(client.answer().body, "quick");
  EXPECT_EQ(client.answer().body, "last");
  EXPECT_EQ(client.answer().status, 404);
}

// Proves D7
TEST_F(http_replace, counts_requests_by_the_pattern_that_they_began_with) {
  const auto routes_with = [&](const std::string& pattern) {
    http::router made;
    made.get(pattern, says("x")).get("/both", says("both")).get("/slow" + pattern, says_at_the_gate("slow"));
    return made;
  };
  serve(routes_with("/old/{id}"));
  auto client = connect(), slow = connect();
  for (int n = 0; n < 3; ++n) client.ask(get_of("/old/1"));
  client.ask(get_of("/both"));
  slow.send(get_of("/slow/old/1"));
  ASSERT_TRUE(gate_.wait_for(1));
  server_->replace(routes_with("/new/{id}"));
  for (int n = 0; n < 2; ++n) client.ask(get_of("/new/1"));
  client.ask(get_of("/both"));
  EXPECT_EQ(client.ask(get_of("/old/1")).status, 404);
  gate_.open();
  EXPECT_EQ(slow.answer().status, 200);
  EXPECT_EQ(counted("/slow/old/{id}", 1), 1);
  EXPECT_EQ(counted("/old/{id}", 3), 3);
  EXPECT_EQ(counted("/new/{id}", 2), 2);
  EXPECT_EQ(counted("/both", 2), 2);
  EXPECT_EQ(counted("/slow/new/{id}", 0), 0);
}

TEST_F(http_replace, ends_a_group_with_its_last_request_and_never_before) {
  auto removed = std::make_shared<http::worker_group>(http::worker_group_options{.threads = 1});
  const std::weak_ptr<http::worker_group> group = removed;
  http::router before, after;
  before.get("/stuck", says_at_the_gate("stuck"), {.workers = removed});
  before.post_batched({"/batched"}, says_together("batch"), {.workers = removed});
  after.get("/own", says("own"));
  removed.reset();
  serve(std::move(before));
  auto stuck = connect(), batched = connect();
  stuck.send(get_of("/stuck"));
  ASSERT_TRUE(gate_.wait_for(1));
  batched.send(post_of("/batched", "x"));
  ASSERT_TRUE(eventually([&] { return group.lock()->waiting() == 1; }));
  server_->replace(std::move(after));
  for (int n = 0; n < 10; ++n) EXPECT_EQ(connect().ask(get_of("/own")).status, 200);
  EXPECT_FALSE(group.expired());
  gate_.open();
  EXPECT_EQ(stuck.answer().body, "stuck");
  EXPECT_EQ(batched.answer().body, "batch1");
  EXPECT_TRUE(eventually([&] { return group.expired(); }));
}

TEST_F(http_replace, lets_a_server_end_that_has_requests_in_groups_of_removed_routes) {
  auto removed = std::make_shared<http::worker_group>(http::worker_group_options{.threads = 1});
  http::router before;
  before.get("/stuck", says_at_the_gate("stuck"), {.workers = removed});
  const std::weak_ptr<http::worker_group> group = std::exchange(removed, nullptr);
  serve(std::move(before));
  auto running = connect(), waiting = connect();
  running.send(get_of("/stuck"));
  ASSERT_TRUE(gate_.wait_for(1));
  waiting.send(get_of("/stuck"));
  ASSERT_TRUE(eventually([&] { return group.lock()->waiting() == 1; }));
  server_->replace({});
  auto ended = std::async(std::launch::async, [&] { server_.reset(); });
  EXPECT_TRUE(running.ends());
  EXPECT_TRUE(waiting.ends());
  EXPECT_EQ(ended.wait_for(milliseconds(50)), std::future_status::timeout) << "a handler runs";
  gate_.open();
  ended.get();
  EXPECT_TRUE(group.expired());
}

TEST_F(http_replace, changes_nothing_about_a_drain) {
  http::router before;
  before.get("/slow", says_at_the_gate("old"));
  serve(std::move(before));
  auto slow = connect();
  slow.send(get_of("/slow"));
  ASSERT_TRUE(gate_.wait_for(1));
  server_->replace({});
  auto drained = std::async(std::launch::async, [&] { return server_->drain(seconds(20)); });
  EXPECT_TRUE(eventually([&] { return !connect().connected(); }));
  server_->replace({});
  gate_.open();
  EXPECT_EQ(slow.answer().body, "old");
  slow.finish();
  EXPECT_TRUE(drained.get());
  server_->replace({});
}

// Everything that a request can be answered by, in tables that each have a number.
class http_replace_under_load : public http_replace {
 protected:
  static constexpr int replacements = 1000;

  http::router routes_of(int number) {
    http::router made;
    const std::shared_ptr<int> alive(new int(number), [this](const int* one) {
      --tables_;
      delete one;
    });
    ++tables_;
    const auto tell = [alive](const http::request&) {
      return http::text(200, "text/plain", std::to_string(*alive));
    };
    const auto mine = std::make_shared<http::worker_group>(http::worker_group_options{.threads = 2});
    const auto tell_together = [alive](std::span<const http::request* const> asked) {
      return std::vector<http::response>(asked.size(), http::text(200, "text/plain", std::to_string(*alive)));
    };
    made.get("/quick", tell, {.quick = true}).get("/own/{id}", tell);
    made.get("/group", tell, {.workers = mine}).get("/lasting", tell, {.workers = lasting_});
    made.post_batched({"/batched"}, tell_together, {.at_once_max = 2});
    made.post_batched({"/batched_in_group"}, tell_together, {.workers = lasting_});
    made.get(number % 2 == 0 ? "/even" : "/odd", tell);
    return made;
  }

  // A client's requests until the end; how many rounds of all routes.
  std::int64_t ask_until_the_end() {
    auto client = connect();
    std::int64_t asked = 0;
    const std::array<std::string, 6> each{get_of("/quick"),           get_of("/own/7"),
                                          get_of("/group"),           get_of("/lasting"),
                                          post_of("/batched", "xyz"), post_of("/batched_in_group", "x")};
    while (!over_) {
      for (const auto& one : each) {
        const int at_least = in_force_;
        const auto answer = client.ask(one);
        const int at_most = begun_;
        const int got = answer.status == 200 ? std::stoi(answer.body) : -1;
        EXPECT_TRUE(at_least <= got && got <= at_most)
            << one << at_least << " <= " << got << " <= " << at_most << "\n"
            << answer.head;
        if (got < at_least || got > at_most) return asked;
      }
      ++asked;
      ++rounds_;
    }
    return asked;
  }

  std::shared_ptr<http::worker_group> lasting_ =
      std::make_shared<http::worker_group>(http::worker_group_options{.threads = 2});
  std::atomic<int> begun_ = 0;     // the last table that was given
  std::atomic<int> in_force_ = 0;  // the last one that was taken on
  std::atomic<int> tables_ = 0;
  std::atomic<std::int64_t> rounds_ = 0;  // of all clients
  std::atomic<bool> over_ = false;
};

TEST_F(http_replace_under_load, answers_every_request_by_routes_that_are_in_force) {
  serve(routes_of(0));
  std::vector<std::future<std::int64_t>> clients;
  for (int n = 0; n < 4; ++n)
    clients.push_back(std::async(std::launch::async, [&] { return ask_until_the_end(); }));
  for (int n = 1; n <= replacements; ++n) {
    auto next = routes_of(n);
    begun_ = n;
    server_->replace(std::move(next));
    in_force_ = n;
    EXPECT_TRUE(eventually([&] { return HasFailure() || rounds_ >= n; })) << "clients fall behind";
  }
  over_ = true;
  std::int64_t rounds = 0;
  for (auto& one : clients) rounds += one.get();
  EXPECT_GT(rounds, 0);
  EXPECT_TRUE(eventually([&] { return tables_ == 1; })) << tables_ << " tables are alive";
  for (const auto* route : {"/quick", "/own/{id}", "/group", "/lasting"})
    EXPECT_EQ(counted(route, rounds), rounds) << route;
  for (const auto* route : {"/batched", "/batched_in_group"})
    EXPECT_EQ(counted(route, rounds, "POST"), rounds) << route;
}

TEST_F(http_replace_under_load, by_several_threads_ends_with_one_table) {
  serve(routes_of(0));
  auto client = std::async(std::launch::async, [&] {
    auto connection = connect();
    int answered = 0;
    while (!over_) answered += connection.ask(get_of("/lasting")).status == 200 ? 1 : -1'000'000;
    return answered;
  });
  std::vector<std::future<void>> all;
  for (int n = 0; n < 4; ++n)
    all.push_back(std::async(std::launch::async, [&] {
      for (int k = 0; k < 50; ++k) server_->replace(routes_of(k));
    }));
  for (auto& one : all) one.get();
  over_ = true;
  EXPECT_GT(client.get(), -1);
  EXPECT_TRUE(eventually([&] { return tables_ == 1; }));
  server_.reset();
  EXPECT_EQ(tables_, 0);
}

}  // namespace
}  // namespace settle

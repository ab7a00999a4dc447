// Routes with threads of their own.
#include <future>
#include <vector>

#include "support/expect_error.hpp"
#include "support/http_world.hpp"

namespace settle {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::code_of;
using test::get_of;
using test::post_of;
using test::raw_http;
using group = std::shared_ptr<http::worker_group>;

group group_of(const http::worker_group_options& options) {
  return std::make_shared<http::worker_group>(options);
}

class http_workers : public test::http_world {
 protected:
  static http::response plain(const http::request& asked) {
    return http::text(200, "text/plain", shown(asked));
  }

  http::handler stuck() {
    return [this](const http::request& asked) {
      gate_.pass();
      return plain(asked);
    };
  }

  http::batch_handler answers_together() {
    return [this](std::span<const http::request* const> asked) {
      gate_.pass();
      return std::vector<http::response>(asked.size(),
                                         http::text(200, "text/plain", std::to_string(asked.size())));
    };
  }

  http::server_options with_world(http::server_options options = {}) {
    options.env.log = &log_;
    options.env.counters = &counters_;
    return options;
  }

  void serve(http::router routes, const http::server_options& options = {}) {
    server_.emplace(std::move(routes), with_world(options));
  }

  // Connections that have sent this, and the server has read it.
  std::vector<raw_http> send_each(std::size_t count, const std::string& bytes) {
    std::vector<raw_http> all;
    for (std::size_t n = 0; n < count; ++n) {
      all.push_back(connect());
      all.back().send(bytes);
    }
    return all;
  }

  static void expect_all(std::vector<raw_http>& clients, int status) {
    for (auto& one : clients) EXPECT_EQ(one.answer().status, status);
  }
};

TEST_F(http_workers, that_are_all_stuck_delay_nobody_outside_of_their_group) {
  const auto hanging = group_of({.threads = 2}), healthy = group_of({.threads = 1});
  http::router routes;
  routes.get("/hanging", stuck(), {.workers = hanging}).get("/healthy", plain, {.workers = healthy});
  routes.get("/own", plain).get("/quick", plain, {.quick = true});
  serve(std::move(routes), {.worker_threads = 1});
  auto waiting = send_each(5, get_of("/hanging"));
  ASSERT_TRUE(gate_.wait_for(2));
  auto other = connect();
  for (int n = 0; n < 20; ++n)
    for (const auto* path : {"/healthy", "/own", "/quick"}) EXPECT_EQ(other.ask(get_of(path)).status, 200);
  gate_.open();
  expect_all(waiting, 200);
  EXPECT_EQ(hanging->threads_started(), 2U);
  EXPECT_EQ(healthy->threads_started(), 1U);
}

TEST_F(http_workers, refuse_what_is_beyond_their_queue_and_nothing_of_others) {
  const auto full = group_of({.threads = 1, .queue_max = 2}),
             other = group_of({.threads = 1, .queue_max = 2});
  http::router routes;
  routes.get("/full", stuck(), {.workers = full}).get("/other", plain, {.workers = other}).get("/own", plain);
  serve(std::move(routes), {.worker_threads = 1, .queue_max = 1});
  auto running = send_each(1, get_of("/full"));
  ASSERT_TRUE(gate_.wait_for(1));
  auto waiting = send_each(2, get_of("/full"));
  ASSERT_TRUE(eventually([&] { return full->waiting() == 2; }));
  auto client = connect();
  const auto refused = client.ask(get_of("/full"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Retry-After: 1")) << refused.head;
  EXPECT_NE(refused.body.find("queue_full"), std::string::npos) << refused.body;
  EXPECT_EQ(client.ask(get_of("/other")).status, 200) << "on the same connection, too";
  EXPECT_EQ(client.ask(get_of("/own")).status, 200);
  EXPECT_EQ(refused_for("queue_full"), 1);
  gate_.open();
  expect_all(running, 200);
  expect_all(waiting, 200);
}

TEST_F(http_workers, that_are_stuck_do_not_use_up_the_room_for_bodies_of_others) {
  const auto hanging = group_of({.threads = 1, .bodies_bytes_max = 2500});
  http::router routes;
  routes.post("/hanging", stuck(), {.workers = hanging}).post("/own", plain);
  serve(std::move(routes), {.bodies_bytes_max = 2500});
  const std::string body(1000, 'b');
  auto waiting = send_each(2, post_of("/hanging", body));
  ASSERT_TRUE(gate_.wait_for(1));
  ASSERT_TRUE(eventually([&] { return hanging->waiting() == 1; }));
  auto client = connect();
  const auto refused = client.ask(post_of("/hanging", body));
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.body.find("memory_full"), std::string::npos) << refused.body;
  for (int n = 0; n < 5; ++n) EXPECT_EQ(client.ask(post_of("/own", std::string(2000, 'c'))).status, 200) << n;
  gate_.open();
  expect_all(waiting, 200);
  EXPECT_EQ(client.ask(post_of("/hanging", std::string(2500, 'd'))).status, 200) << "it has room again";
}

TEST_F(http_workers, take_a_single_body_however_large_it_is) {
  const auto small = group_of({.threads = 1, .bodies_bytes_max = 10});
  http::router routes;
  routes.post("/small", plain, {.workers = small});
  serve(std::move(routes));
  EXPECT_EQ(connect().ask(post_of("/small", std::string(100, 'b'))).status, 200);
}

TEST_F(http_workers, are_started_when_a_request_finds_none_idle) {
  const auto lazy = group_of({.threads = 2}), unused = group_of({.threads = 1024});
  http::router routes;
  routes.get("/fast", plain, {.workers = lazy}).get("/held", stuck(), {.workers = lazy});
  routes.get("/unused", plain, {.workers = unused});
  serve(std::move(routes));
  EXPECT_EQ(lazy->threads_started(), 0U);
  auto client = connect();
  for (int n = 0; n < 50; ++n) EXPECT_EQ(client.ask(get_of("/fast")).status, 200);
  EXPECT_EQ(lazy->threads_started(), 1U) << "it was idle each time";
  auto held = send_each(1, get_of("/held"));
  ASSERT_TRUE(gate_.wait_for(1));
  EXPECT_EQ(lazy->threads_started(), 1U);
  EXPECT_EQ(client.ask(get_of("/fast")).status, 200);
  EXPECT_EQ(lazy->threads_started(), 2U);
  auto more = send_each(3, get_of("/held"));
  ASSERT_TRUE(eventually([&] { return lazy->waiting() == 2; }));
  EXPECT_EQ(lazy->threads_started(), 2U) << "there may not be more";
  gate_.open();
  expect_all(held, 200);
  expect_all(more, 200);
  EXPECT_EQ(unused->threads_started(), 0U);
}

TEST_F(http_workers, answer_batches_together_in_their_group) {
  const auto together = group_of({.threads = 4});
  http::router routes;
  routes.post_batched({"/one", "/other"}, answers_together(), {.batch_max = 8, .workers = together});
  routes.get("/own", plain);
  serve(std::move(routes), {.worker_threads = 1});
  auto first = send_each(1, post_of("/one", "a"));
  ASSERT_TRUE(gate_.wait_for(1));
  auto next = send_each(6, post_of("/other", "b"));
  ASSERT_TRUE(eventually([&] { return together->waiting() == 6; }));
  EXPECT_EQ(connect().ask(get_of("/own")).status, 200);
  EXPECT_EQ(together->threads_started(), 1U) << "one call at a time needs one";
  gate_.open();
  EXPECT_EQ(first[0].answer().body, "1");
  for (auto& one : next) EXPECT_EQ(one.answer().body, "6");
}

TEST_F(http_workers, may_serve_several_servers_and_answer_each_its_own) {
  const auto shared = group_of({.threads = 2});
  const auto routes_of = [&](const std::string& name) {
    http::router made;
    made.get("/name", [name](const http::request&) { return http::text(200, "text/plain", name); },
             {.workers = shared});
    return made;
  };
  const http::server one(routes_of("one"), with_world()), two(routes_of("two"), with_world());
  std::vector<std::future<int>> clients;
  for (int n = 0; n < 4; ++n)
    clients.push_back(std::async(std::launch::async, [&, n] {
      raw_http client(n % 2 == 0 ? one.port() : two.port());
      int right = 0;
      for (int k = 0; k < 200; ++k) right += client.ask(get_of("/name")).body == (n % 2 == 0 ? "one" : "two");
      return right;
    }));
  for (auto& one_client : clients) EXPECT_EQ(one_client.get(), 200);
}

TEST_F(http_workers, let_a_server_go_that_has_only_waiting_requests_in_their_group) {
  const auto shared = group_of({.threads = 1});
  http::router held, waits;
  held.get("/held", stuck(), {.workers = shared});
  waits.get("/alone", plain, {.workers = shared});
  waits.post_batched({"/batched"}, answers_together(), {.workers = shared});
  serve(std::move(held));
  auto running = send_each(1, get_of("/held"));
  ASSERT_TRUE(gate_.wait_for(1));
  {
    const http::server second(std::move(waits), with_world());
    raw_http alone(second.port()), batched(second.port());
    alone.send(get_of("/alone"));
    batched.send(post_of("/batched", "x"));
    ASSERT_TRUE(eventually([&] { return shared->waiting() == 2; }));
  }
  EXPECT_EQ(shared->waiting(), 0U) << "what the server had waiting went with it";
  gate_.open();
  expect_all(running, 200);
}

TEST_F(http_workers, are_waited_for_by_the_server_whose_handler_they_run) {
  const auto outlives = group_of({.threads = 1});
  http::router routes;
  routes.get("/held",
             [this](const http::request& asked) {
               gate_.pass();
               ++handled_;
               return plain(asked);
             },
             {.workers = outlives});
  serve(std::move(routes));
  auto client = connect();
  client.send(get_of("/held"));
  ASSERT_TRUE(gate_.wait_for(1));
  auto gone = std::async(std::launch::async, [&] { server_.reset(); });
  EXPECT_TRUE(client.ends());
  EXPECT_EQ(gone.wait_for(milliseconds(50)), std::future_status::timeout) << "the handler still runs";
  gate_.open();
  gone.get();
  EXPECT_EQ(handled_, 1);
}

TEST_F(http_workers, end_with_their_server_if_nobody_else_has_them) {
  auto mine = group_of({.threads = 2});
  const std::weak_ptr<http::worker_group> ended = mine;
  http::router routes;
  routes.get("/fast", plain, {.workers = mine}).get("/held", stuck(), {.workers = mine});
  serve(std::move(routes));
  auto held = send_each(1, get_of("/held"));
  ASSERT_TRUE(gate_.wait_for(1));
  mine.reset();
  EXPECT_EQ(connect().ask(get_of("/fast")).status, 200) << "its routes keep it";
  gate_.open();
  server_.reset();
  EXPECT_TRUE(ended.expired());
}

TEST_F(http_workers, may_outlive_their_server_and_serve_the_next_one) {
  const auto lasting = group_of({.threads = 1});
  for (int n = 0; n < 3; ++n) {
    http::router routes;
    routes.get("/fast", plain, {.workers = lasting});
    server_.reset();
    serve(std::move(routes));
    EXPECT_EQ(connect().ask(get_of("/fast")).status, 200);
  }
  server_.reset();
  EXPECT_EQ(lasting->threads_started(), 1U);
  EXPECT_EQ(lasting.use_count(), 1);
}

TEST_F(http_workers, may_be_ended_by_a_handler_of_another_group) {
  auto done_with = group_of({.threads = 1});
  const std::weak_ptr<http::worker_group> ended = done_with;
  const auto other = group_of({.threads = 1});
  {
    http::router first;
    first.get("/fast", plain, {.workers = done_with});
    serve(std::move(first));
    EXPECT_EQ(connect().ask(get_of("/fast")).status, 200);
    server_.reset();
  }
  http::router routes;
  routes.get("/drop",
             [&](const http::request& asked) {
               done_with.reset();
               return plain(asked);
             },
             {.workers = other});
  serve(std::move(routes));
  EXPECT_EQ(connect().ask(get_of("/drop")).status, 200);
  EXPECT_TRUE(ended.expired());
}

TEST_F(http_workers, are_told_to_stop_when_a_drain_has_lost_patience) {
  const auto held = group_of({.threads = 1});
  std::atomic<bool> told = false;
  http::router routes;
  routes.get("/held",
             [&](const http::request& asked) {
               gate_.pass();
               told = asked.cancelled.stop_requested();
               return plain(asked);
             },
             {.workers = held});
  serve(std::move(routes));
  auto running = send_each(1, get_of("/held"));
  ASSERT_TRUE(gate_.wait_for(1));
  auto waiting = send_each(1, get_of("/held"));
  ASSERT_TRUE(eventually([&] { return held->waiting() == 1; }));
  EXPECT_FALSE(server_->drain(milliseconds(50)));
  EXPECT_TRUE(running[0].ends());
  EXPECT_TRUE(waiting[0].ends());
  gate_.open();
  server_.reset();
  EXPECT_TRUE(told);
}

TEST_F(http_workers, have_options_within_bounds) {
  EXPECT_EQ(code_of([&] { group_of({.threads = 0}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { group_of({.threads = 1025}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { group_of({.queue_max = 0}); }), errc::invalid_argument);
  http::router routes;
  EXPECT_EQ(code_of([&] { routes.get("/both", plain, {.quick = true, .workers = group_of({})}); }),
            errc::invalid_argument);
  EXPECT_EQ(routes.handle({.method = "GET", .target = "/both"}).status, 404) << "it was not added";
}

}  // namespace
}  // namespace settle

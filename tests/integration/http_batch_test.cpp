// Requests that are answered together.
#include <mutex>
#include <stdexcept>

#include "http/routes.hpp"
#include "settle/error.hpp"
#include "support/expect_error.hpp"
#include "support/http_world.hpp"

namespace settle {
namespace {

using test::get_of;
using test::post_of;
using test::raw_http;

class http_batches : public test::http_world {
 protected:
  http_batches() { start_with({.worker_threads = 3}); }

  void start_with(http::server_options options) {
    options.env.log = &log_;
    options.env.counters = &counters_;
    server_.reset();
    server_.emplace(batched_routes(), options);
  }

  http::router batched_routes() {
    http::router made;
    for (const auto& one : around_) made.use(one);
    made.post_batched({"/one", "/other"}, [this](auto asked) { return answer(asked); },
                      {.batch_max = batch_max, .at_once_max = at_once_max_});
    made.get("/quick", [](const http::request&) { return http::text(200, "text/plain", "quick"); },
             {.quick = true});
    made.get("/slow", [](const http::request&) { return http::text(200, "text/plain", "slow"); });
    return made;
  }

  std::vector<http::response> answer(std::span<const http::request* const> asked) {
    {
      const std::scoped_lock lock(mutex_);
      sizes_.push_back(asked.size());
    }
    gate_.pass();
    std::vector<http::response> all;
    for (const auto* one : asked) {
      if (one->body == "throw") throw error(errc::store_unavailable, "away");
      if (one->body == "forget") return {};
      note(one->body);
      all.push_back(http::text(200, "text/plain", shown(*one)));
    }
    return all;
  }

  void note(const std::string& body) {
    const std::scoped_lock lock(mutex_);
    seen_.push_back(body);
  }

  // Connections that the server knows.
  std::vector<raw_http> connect_many(std::size_t count) {
    std::vector<raw_http> all;
    for (std::size_t n = 0; n < count; ++n) {
      all.push_back(connect());
      EXPECT_EQ(all.back().ask(get_of("/quick")).status, 200);
    }
    return all;
  }

  // One request is at the gate; the others arrive while it is there.
  std::vector<raw_http> send_while_one_is_answered(const std::vector<std::string>& bodies) {
    auto clients = connect_many(bodies.size() + 2);
    clients[0].send(post_of("/one", "first"));
    EXPECT_TRUE(gate_.wait_for(1));
    for (std::size_t n = 0; n < bodies.size(); ++n)
      clients[n + 1].send(post_of(n % 2 == 0 ? "/one" : "/other", bodies[n]));
    // What was sent before has been read when this is answered.
    EXPECT_EQ(clients.back().ask(get_of("/quick")).status, 200);
    return clients;
  }

  std::vector<std::size_t> sizes() {
    const std::scoped_lock lock(mutex_);
    return sizes_;
  }

  // Middleware that does as a request's body says.
  static http::middleware obedient() {
    return [](http::handler next) -> http::handler {
      return [next](const http::request& asked) {
        if (asked.body == "stranger") return http::problem(401, "stranger", "who are you");
        if (asked.body == "clumsy") throw std::runtime_error("the middleware stumbled");
        auto passed = asked;
        if (asked.body == "rename") passed.body = "renamed";
        if (asked.body == "twice") next(passed);
        return next(passed);
      };
    };
  }

  static http::middleware marks(const std::string& mark) {
    return [mark](http::handler next) -> http::handler {
      return [mark, next](const http::request& asked) {
        auto answer = next(asked);
        answer.body = mark + "(" + answer.body + ")";
        return answer;
      };
    };
  }

  void start_behind(std::vector<http::middleware> around) {
    around_ = std::move(around);
    start_with({.worker_threads = 3});
  }

  static constexpr std::size_t batch_max = 4;
  std::vector<http::middleware> around_;
  std::vector<std::string> seen_;  // bodies, by the handler; read when nothing is under way
  std::size_t at_once_max_ = 1;
  std::mutex mutex_;
  std::vector<std::size_t> sizes_;
};

TEST_F(http_batches, are_what_has_come_while_the_last_one_was_answered) {
  auto clients = send_while_one_is_answered({"a", "b", "c"});
  EXPECT_EQ(clients.back().ask(get_of("/slow")).body, "slow") << "nobody else waits for them";
  gate_.open();
  EXPECT_EQ(clients[0].answer().body, "POST /one [first]");
  EXPECT_EQ(clients[1].answer().body, "POST /one [a]");
  EXPECT_EQ(clients[2].answer().body, "POST /other [b]");
  EXPECT_EQ(clients[3].answer().body, "POST /one [c]");
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{1, 3}));
}

TEST_F(http_batches, are_not_larger_than_their_maximum) {
  auto clients = send_while_one_is_answered({"a", "b", "c", "d", "e", "f"});
  gate_.open();
  for (std::size_t n = 0; n < 7; ++n) EXPECT_EQ(clients[n].answer().status, 200) << n;
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{1, 4, 2}));
}

TEST_F(http_batches, run_beside_each_other_when_half_of_one_waits) {
  at_once_max_ = 2;
  start_with({.worker_threads = 3});
  auto clients = send_while_one_is_answered({"a"});
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{1})) << "one alone waits for the end of the first";
  clients.back().send(post_of("/one", "b"));
  EXPECT_TRUE(gate_.wait_for(2));
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{1, 2}));
  gate_.open();
  for (const std::size_t n : {0, 1, 2}) EXPECT_EQ(clients[n].answer().status, 200) << n;
}

TEST_F(http_batches, that_fail_are_answered_each) {
  auto clients = send_while_one_is_answered({"a", "throw"});
  gate_.open();
  EXPECT_EQ(clients[0].answer().status, 200);
  for (std::size_t n = 1; n < 3; ++n) {
    const auto failed = clients[n].answer();
    EXPECT_EQ(failed.status, 503) << n;
    EXPECT_TRUE(failed.has("Retry-After: 1"));
  }
  EXPECT_EQ(clients[1].ask(post_of("/one", "forget")).status, 500) << "an answer is missing";
  EXPECT_EQ(clients[1].ask(post_of("/one", "well")).status, 200);
}

TEST_F(http_batches, leave_out_who_was_told_that_it_took_too_long) {
  start_with({.worker_threads = 3, .handler_time_max = std::chrono::milliseconds(300)});
  auto clients = send_while_one_is_answered({"a"});
  EXPECT_EQ(clients[0].answer().status, 503);
  EXPECT_EQ(clients[1].answer().status, 503);
  gate_.open();
  auto later = connect();
  EXPECT_EQ(later.ask(post_of("/one", "later")).body, "POST /one [later]");
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{1, 1})) << "what nobody waits for is not begun";
}

TEST_F(http_batches, count_as_waiting_and_are_bounded) {
  start_with({.worker_threads = 1, .queue_max = 2});
  auto clients = send_while_one_is_answered({"a", "b", "c"});
  EXPECT_EQ(clients[3].answer().status, 503);
  gate_.open();
  for (std::size_t n = 0; n < 3; ++n) EXPECT_EQ(clients[n].answer().status, 200) << n;
}

TEST_F(http_batches, pass_each_request_through_the_middleware_and_are_still_answered_together) {
  start_behind({marks("outer"), marks("inner")});
  auto clients = send_while_one_is_answered({"a", "b", "c"});
  gate_.open();
  EXPECT_EQ(clients[0].answer().body, "outer(inner(POST /one [first]))");
  EXPECT_EQ(clients[1].answer().body, "outer(inner(POST /one [a]))");
  EXPECT_EQ(clients[2].answer().body, "outer(inner(POST /other [b]))");
  EXPECT_EQ(clients[3].answer().body, "outer(inner(POST /one [c]))");
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{1, 3}));
}

TEST_F(http_batches, do_not_hold_what_their_middleware_has_answered) {
  start_behind({obedient()});
  auto clients = send_while_one_is_answered({"a", "stranger", "clumsy", "rename"});
  gate_.open();
  EXPECT_EQ(clients[1].answer().body, "POST /one [a]");
  EXPECT_EQ(clients[2].answer().status, 401);
  EXPECT_EQ(clients[3].answer().status, 500) << "its middleware has thrown";
  EXPECT_EQ(clients[4].answer().body, "POST /other [renamed]");
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(seen_, (std::vector<std::string>{"first", "a", "renamed"}));
}

TEST_F(http_batches, of_which_the_middleware_leaves_nothing_do_not_ask_the_handler) {
  start_behind({obedient()});
  auto clients = send_while_one_is_answered({"stranger", "stranger"});
  gate_.open();
  EXPECT_EQ(clients[1].answer().status, 401);
  EXPECT_EQ(clients[2].answer().status, 401);
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{1}));
}

TEST_F(http_batches, that_fail_are_seen_to_fail_by_the_middleware_of_each) {
  start_behind({[](http::handler next) -> http::handler {
    return [next](const http::request& asked) {
      try {
        return next(asked);
      } catch (const error&) {
        if (asked.body == "throw") throw;
        return http::text(202, "text/plain", "later");
      }
    };
  }});
  auto clients = send_while_one_is_answered({"a", "throw"});
  gate_.open();
  EXPECT_EQ(clients[0].answer().status, 200);
  EXPECT_EQ(clients[1].answer().status, 202);
  EXPECT_EQ(clients[2].answer().status, 503);
}

TEST_F(http_batches, answer_a_request_alone_that_its_middleware_sends_again) {
  start_behind({obedient()});
  auto clients = send_while_one_is_answered({"a", "twice", "b"});
  gate_.open();
  for (std::size_t n = 0; n < 4; ++n) EXPECT_EQ(clients[n].answer().status, 200) << n;
  EXPECT_EQ(sizes(), (std::vector<std::size_t>{1, 3, 1}));
  EXPECT_EQ(seen_.back(), "twice");
}

TEST_F(http_batches, behind_middleware_are_no_larger_than_a_stack_should_hold) {
  http::router made;
  made.use(marks("m"))
      .post_batched({"/one"}, [this](auto asked) { return answer(asked); }, {.batch_max = 100'000});
  http::request asked{.method = "POST", .path = "/one"};
  http::match found;
  EXPECT_FALSE(made.routes().find(asked, found));
  EXPECT_EQ(found.found->together->size_max, http::batch_options::behind_middleware_max);
}

TEST_F(http_batches, are_answered_alone_without_a_server) {
  gate_.open();
  EXPECT_EQ(batched_routes().handle({.method = "POST", .target = "/other", .body = "x"}).body,
            "POST /other [x]");
  around_ = {marks("m")};
  EXPECT_EQ(batched_routes().handle({.method = "POST", .target = "/other", .body = "x"}).body,
            "m(POST /other [x])");
}

}  // namespace
}  // namespace settle

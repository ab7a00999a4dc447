// Every limit of the server, and clients that mean no good.
#include <sys/resource.h>

#include <fstream>
#include <vector>

#include "support/http_world.hpp"

namespace settle {
namespace {

using std::chrono::milliseconds;
using test::get_of;
using test::post_of;
using test::raw_http;

class http_limits : public test::http_world {
 protected:
  static bool is_refused(raw_http& client, int status) {
    const auto answer = client.answer();
    EXPECT_EQ(answer.status, status) << answer.head;
    client.finish();
    return answer.status == status && answer.has("Connection: close") && client.ends();
  }

  static std::size_t resident_bytes() {
    std::ifstream in("/proc/self/statm");
    std::size_t total = 0, resident = 0;
    in >> total >> resident;
    return resident * static_cast<std::size_t>(::getpagesize());
  }
};

TEST_F(http_limits, of_the_request_line_and_the_headers) {
  start({.request_line_bytes_max = 200, .header_bytes_max = 1000, .header_count_max = 10});
  const auto refused = [&](const std::string& bytes, int status) {
    auto client = connect();
    client.send(bytes);
    return is_refused(client, status);
  };
  const std::string line = "GET /quick HTTP/1.1\r\nHost: x\r\n";
  EXPECT_TRUE(refused("GET /" + std::string(300, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 414));
  EXPECT_TRUE(refused("GET /" + std::string(300, 'a'), 414)) << "without waiting for its end";
  EXPECT_TRUE(refused("GET /" + std::string(300, 'a') + " HTTP/1.1\r\nHost: x\r\n", 414))
      << "nor for the head's";
  EXPECT_TRUE(refused(line + "X: " + std::string(1000, 'a') + "\r\n\r\n", 431));
  EXPECT_TRUE(refused(line + "X: " + std::string(1000, 'a'), 431));
  std::string many = line;
  for (int n = 0; n < 10; ++n) many += "A: b\r\n";
  EXPECT_TRUE(refused(many + "\r\n", 431));
  std::string dripping = line;
  for (int n = 0; n < 9; ++n) dripping += "A: " + std::string(200, 'b') + "\r\n";
  auto drip = connect();
  for (std::size_t at = 0; at < dripping.size(); at += 150) drip.send(dripping.substr(at, 150));
  EXPECT_TRUE(is_refused(drip, 431)) << "whole fields do not count less";
  expect_good_service();
}

TEST_F(http_limits, of_the_body_before_it_is_read) {
  start();
  auto huge = connect();
  huge.send("POST /quick HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n");
  EXPECT_TRUE(is_refused(huge, 413));
  auto own = connect();
  EXPECT_EQ(own.ask(post_of("/small", "0123456789")).status, 200);
  EXPECT_EQ(own.ask(post_of("/small", "0123456789a")).status, 413);
  auto eager = connect();
  eager.send(post_of("/quick", std::string(2 << 20, 'x')));
  EXPECT_EQ(eager.answer().status, 413) << "also for one who has sent it all already";
  auto chunked = connect();
  chunked.send("POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n6\r\n");
  EXPECT_TRUE(is_refused(chunked, 413));
  EXPECT_GE(refused_for("body_too_large", 4), 4);
}

TEST_F(http_limits, of_all_bodies_together) {
  start({.bodies_bytes_max = 1000});
  auto first = connect();
  first.send("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 800\r\n\r\n" + std::string(700, 'a'));
  auto ping = connect();
  EXPECT_EQ(ping.ask(get_of("/slow")).status, 200) << "so the first has been read";
  auto second = connect();
  second.send("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 800\r\n\r\n" + std::string(700, 'a'));
  const auto refused = second.answer();
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Retry-After: 1"));
  first.send(std::string(100, 'a'));
  EXPECT_EQ(first.answer().status, 200);
  for (int n = 0; n < 5; ++n)
    EXPECT_EQ(ping.ask(post_of("/slow", std::string(900, 'b'))).status, 200) << "given back";
}

TEST_F(http_limits, of_silence_and_of_dripping) {
  start({.first_byte_time_max = milliseconds(400),
         .idle_time_max = milliseconds(50),
         .header_time_max = milliseconds(400),
         .transfer_grace = milliseconds(100)});
  auto silent = connect();
  EXPECT_TRUE(silent.ends());
  auto idle = connect();
  EXPECT_EQ(idle.ask(get_of("/quick")).status, 200);
  EXPECT_TRUE(idle.ends());
  auto dripping = connect();
  const auto begun = std::chrono::steady_clock::now();
  dripping.send("GET /quick HTTP/1.1\r\n");
  while (dripping.send("X: y\r\n") && std::chrono::steady_clock::now() < begun + milliseconds(300))
    std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(dripping.answer().status, 408);
  auto stalling = connect();
  stalling.send("POST /quick HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_TRUE(is_refused(stalling, 408));
  EXPECT_GE(refused_for("request_slow", 2), 2);
}

TEST_F(http_limits, of_the_pace_at_which_a_body_comes_and_an_answer_is_taken) {
  start({.transfer_grace = milliseconds(400), .transfer_bytes_per_second_min = 1000});
  auto steady = connect();
  steady.send("POST /quick HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  for (int n = 0; n < 40; ++n) {
    steady.send(std::string(25, 'a'));
    std::this_thread::sleep_for(milliseconds(15));
  }
  EXPECT_EQ(steady.answer().status, 200) << "longer than the grace, but fast enough";
  auto lazy = connect();
  const int bytes = 4096;
  ::setsockopt(lazy.descriptor(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  for (int n = 0; n < 20; ++n) lazy.send(get_of("/big"));
  EXPECT_GE(refused_for("answer_slow"), 1);
  expect_good_service();
}

TEST_F(http_limits, of_the_time_that_a_handler_has) {
  start({.worker_threads = 1, .handler_time_max = milliseconds(80)});
  auto slow = connect();
  slow.send(get_of("/gate"));
  ASSERT_TRUE(gate_.wait_for(1));
  auto behind = connect();
  behind.send(get_of("/gate"));
  const auto late = slow.answer();
  EXPECT_EQ(late.status, 503);
  EXPECT_NE(late.body.find("whether the work was done is not known"), std::string::npos) << late.body;
  EXPECT_NE(late.body.find(R"("instance":"/gate")"), std::string::npos) << late.body;
  const auto never = behind.answer();
  EXPECT_EQ(never.status, 503);
  EXPECT_NE(never.body.find("nothing was done"), std::string::npos) << never.body;
  EXPECT_NE(never.body.find(R"("instance":"/gate")"), std::string::npos) << never.body;
  gate_.open();
  expect_good_service();
  EXPECT_EQ(handled_, 100) << "the first ran to its end and was told, the second never began";
  EXPECT_EQ(log_.count("http_answer_dropped route=/gate"), 1U);
}

TEST_F(http_limits, of_requests_that_wait_for_a_worker) {
  start({.worker_threads = 1, .queue_max = 1});
  auto running = connect(), waiting = connect(), third = connect();
  running.send(get_of("/gate"));
  ASSERT_TRUE(gate_.wait_for(1));
  waiting.send(get_of("/gate"));
  test::raw_answer refused;
  for (int n = 0; n < 100 && refused.status != 503; ++n) {  // until the second one waits
    third.send(get_of("/throws"));
    refused = third.answer();
  }
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Retry-After: 1"));
  EXPECT_FALSE(refused.has("Connection: close")) << "the connection is still good";
  EXPECT_EQ(third.ask(get_of("/quick")).status, 200) << "quick ones need no worker";
  gate_.open();
  EXPECT_EQ(running.answer().status, 200);
  EXPECT_EQ(waiting.answer().status, 200);
  EXPECT_GE(refused_for("queue_full"), 1);
}

// Whoever has gone asks again, and the service has better things to do.
TEST_F(http_limits, let_no_request_begin_whose_client_has_gone) {
  start({.worker_threads = 1});
  auto running = connect(), waiting = connect(), quick = connect();
  running.send(get_of("/gate"));
  ASSERT_TRUE(gate_.wait_for(1));
  waiting.send(get_of("/gate"));
  EXPECT_EQ(quick.ask(get_of("/quick")).status, 200) << "by then the second one waits";
  waiting.reset();
  EXPECT_EQ(eventually_counted("settle_http_closed_connections_total", {}), 1);
  gate_.open();
  EXPECT_EQ(running.answer().status, 200) << "what has begun runs to its end";
  expect_good_service();
  EXPECT_EQ(handled_, 1);
}

TEST_F(http_limits, of_connections) {
  start({.connections_max = 2});
  auto first = connect();
  EXPECT_EQ(first.ask(get_of("/quick")).status, 200);
  {
    auto second = connect();
    EXPECT_EQ(second.ask(get_of("/quick")).status, 200);
    auto third = connect();
    const auto refused = third.answer();
    EXPECT_EQ(refused.status, 503);
    EXPECT_TRUE(refused.has("Retry-After: 1"));
    EXPECT_TRUE(third.ends());
  }
  EXPECT_GE(eventually_counted("settle_http_refused_connections_total", {}), 1);
  EXPECT_GE(eventually_counted("settle_http_closed_connections_total", {}), 1);
  EXPECT_EQ(connect().ask(get_of("/quick")).status, 200) << "there is room again";
}

// Slow clients, each in its own way, and twice as many as there are places.
TEST_F(http_limits, let_nobody_keep_a_place_who_asks_for_nothing) {
  start({.connections_max = 64,
         .first_byte_time_max = std::chrono::minutes(1),
         .header_time_max = std::chrono::minutes(1)});
  auto regular = connect(), uploading = connect();
  EXPECT_EQ(regular.ask(get_of("/quick")).status, 200);
  uploading.send("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
  std::vector<raw_http> slow;
  for (int n = 0; n < 128; ++n) {
    auto& one = slow.emplace_back(server_->port());
    if (n % 2 == 0) one.send("GET /quick HTTP/1.1\r\nX-Slow: ");
    EXPECT_EQ(connect().ask(get_of("/quick")).status, 200) << n;
  }
  EXPECT_EQ(regular.ask(get_of("/quick")).status, 200) << "who has just been served keeps its place";
  uploading.send("cd");
  EXPECT_EQ(uploading.answer().status, 200) << "and so does who has asked for something";
  EXPECT_EQ(slow[0].answer().status, 503) << "the first to go is told so";
  EXPECT_TRUE(slow[1].ends());
  EXPECT_GE(eventually_counted("settle_http_refused_connections_total", {}), 60);
}

TEST_F(http_limits, of_file_descriptors_make_it_pause_and_go_on) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "the undefined behaviour sanitizer opens a pipe for its check of objects, and takes the lack of "
         "descriptors for a bad object";
#endif
  start();
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int lowest_free = ::dup(0);
  ::close(lowest_free);
  auto few = before;
  few.rlim_cur = static_cast<rlim_t>(lowest_free) + 1;
  ::setrlimit(RLIMIT_NOFILE, &few);
  auto client = connect();  // has the last one; the server gets none for its side
  client.send(get_of("/quick"));
  for (int n = 0; n < 2000 && log_.count("http_accept_failed") == 0; ++n)
    std::this_thread::sleep_for(milliseconds(5));
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(log_.count("http_accept_failed"), 1U);
  EXPECT_EQ(client.answer().status, 200) << "it had only to wait";
  expect_good_service();
}

TEST_F(http_limits, keep_hundreds_of_hostile_clients_from_hurting_a_good_one) {
  start({.worker_threads = 2, .header_time_max = std::chrono::minutes(1)});
  std::vector<raw_http> hostile;
  const auto before = resident_bytes();
  for (int n = 0; n < 500; ++n) {
    auto& one = hostile.emplace_back(server_->port());
    switch (n % 5) {
      case 0:
        break;  // silent
      case 1:
        one.send("GET /quick HTTP/1.1\r\nX-Slow: ");
        break;
      case 2:
        one.send("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc");
        break;
      case 3:
        one.send("POST /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5");
        break;
      default:
        one.send(get_of("/quick") + get_of("/quick"));
        break;  // never reads
    }
  }
  for (int round = 0; round < 20; ++round) {
    for (std::size_t n = 1; n < hostile.size(); n += 5) hostile[n].send("a");
    expect_good_service();
  }
  EXPECT_LT(resident_bytes() - before, std::size_t{32} << 20) << "some KiB for each of them";
}

}  // namespace
}  // namespace settle

#include "http/job.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

namespace settle::http {
namespace {

std::shared_ptr<job> job_of(std::uint64_t session) {
  auto made = std::make_shared<job>();
  made->session = session;
  return made;
}

job_chain chain_of(std::initializer_list<std::uint64_t> sessions) {
  job_chain made;
  for (const auto one : sessions) made.push(job_of(one));
  return made;
}

std::string taken_from(job_chain& all) {
  std::string seen;
  while (const auto one = all.pop()) seen += std::to_string(one->session);
  return seen;
}

TEST(job_chain, gives_jobs_in_the_order_in_which_they_came) {
  auto all = chain_of({1, 2, 3});
  EXPECT_EQ(all.size(), 3U);
  EXPECT_EQ(all.pop()->session, 1U);
  all.push(job_of(4));
  EXPECT_EQ(taken_from(all), "234");
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(all.pop(), nullptr);
  all.push(job_of(5));
  EXPECT_EQ(taken_from(all), "5") << "it can be used again";
}

TEST(job_chain, takes_all_of_another_one) {
  auto all = chain_of({1});
  all.append(chain_of({2, 3}));
  all.append({});
  all.push(job_of(4));
  EXPECT_EQ(all.size(), 4U);
  EXPECT_EQ(taken_from(all), "1234");
  all.append(chain_of({5}));
  EXPECT_EQ(taken_from(all), "5");
}

TEST(job_chain, leaves_nothing_behind_when_it_is_moved) {
  auto first = chain_of({1, 2});
  auto second = std::move(first);
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(first.size(), 0U);
  first = chain_of({3});
  EXPECT_EQ(taken_from(first), "3");
  EXPECT_EQ(taken_from(second), "12");
}

TEST(job_chain, of_any_length_ends_without_a_deep_stack) {
  const std::weak_ptr<job> last = [] {
    job_chain all;
    for (std::uint64_t n = 0; n < 200'000; ++n) all.push(job_of(n));
    const auto one = all.pop();
    return std::weak_ptr<job>(one);
  }();
  EXPECT_TRUE(last.expired());
}

TEST(job_source, is_told_once_about_jobs_that_nobody_has_fetched) {
  int told = 0;
  job_source source({}, [&] { ++told; });
  source.give_back(chain_of({1}));
  source.give_back(chain_of({2, 3}));
  EXPECT_EQ(told, 1);
  auto all = source.take_answered();
  EXPECT_EQ(taken_from(all), "123");
  EXPECT_TRUE(source.take_answered().empty());
  source.give_back(chain_of({4}));
  EXPECT_EQ(told, 2);
}

TEST(job_source, waits_for_jobs_that_were_not_withdrawn) {
  job_source source({}, [] {});
  for (int n = 0; n < 3; ++n) source.note_given();
  std::atomic<bool> all_back = false;
  std::jthread server([&] {
    source.wait_for_all(1);
    all_back = true;
  });
  source.give_back(chain_of({1}));
  EXPECT_FALSE(all_back);
  source.give_back(chain_of({2}));
  server.join();
  EXPECT_TRUE(all_back);
}

}  // namespace
}  // namespace settle::http

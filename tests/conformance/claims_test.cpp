// What a claim on an idempotency key is, on every store.
#include "settle/claims.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <latch>
#include <thread>

#include "once/claim_calls.hpp"
#include "settle/error.hpp"
#include "support/claims_fixture.hpp"
#include "support/expect_error.hpp"
#include "support/lost_answer.hpp"
#include "support/shared_faults.hpp"

namespace settle::test {
namespace {

using namespace std::chrono_literals;

// Proves I1, I2, I4
TEST_P(claimed_keys, are_answered_from_their_record_once_they_are_completed) {
  const auto mine = claim(*one);
  ASSERT_EQ(mine.outcome, claim_outcome::claimed);
  EXPECT_EQ(mine.lease, 30s);
  EXPECT_EQ(one->keys->complete(click, mine.token, placed), claim_ended::done);
  for (auto* who : {&one, &two}) {
    const auto again = claim(**who);
    EXPECT_EQ(again.outcome, claim_outcome::completed);
    EXPECT_EQ(again.what, placed);
  }
  EXPECT_EQ(one->counters.value("settle_claims_total", {{"operation", "claim"}, {"outcome", "completed"}}),
            1);
  EXPECT_EQ(one->counters.value("settle_claims_total", {{"operation", "complete"}, {"outcome", "done"}}), 1);
}

// Proves I1
TEST_P(claimed_keys, that_are_at_work_say_for_how_long) {
  claim(*one, {.who = click, .lease = 10s});
  const auto other = claim(*two);
  EXPECT_EQ(other.outcome, claim_outcome::in_flight);
  EXPECT_GT(other.lease, 5s);
  EXPECT_LE(other.lease, 10s);
}

// Whoever sends what he is given must never send a success for work that was not done. Proves I1, I6, I7
TEST_P(claimed_keys, that_were_not_had_have_an_answer_that_says_so) {
  const claim_request first{.who = click, .fingerprint = "POST /orders 1", .lease = 1s};
  const claim_request other{.who = click, .fingerprint = "POST /orders 2"};
  EXPECT_EQ(claim(*one, first).what.status, 0) << "there is no answer yet, and no server sends this one";
  EXPECT_EQ(claim(*two, first).what.status, 409);
  EXPECT_EQ(claim(*two, other).what.status, 422);
  world->pass(1min);
  const auto unknown = claim(*two, first);
  EXPECT_EQ(unknown.outcome, claim_outcome::unknown);
  EXPECT_EQ(unknown.what.status, 409);
  EXPECT_NE(unknown.what.body.find("idempotency_outcome_unknown"), std::string::npos) << unknown.what.body;
  const auto asking = claim(*two, {.who = click, .on_unknown = when_unknown::ask});
  EXPECT_EQ(asking.outcome, claim_outcome::ask);
  EXPECT_EQ(asking.what.status, 0);
}

// Proves I6
TEST_P(claimed_keys, that_come_with_another_request_are_told_so_whatever_became_of_the_first) {
  const claim_request first{.who = click, .fingerprint = "POST /orders 1"};
  const claim_request other{.who = click, .fingerprint = "POST /orders 2"};
  const auto mine = claim(*one, first);
  EXPECT_EQ(outcome(*two, other), claim_outcome::mismatch) << "while it is at work";
  EXPECT_EQ(outcome(*two, first), claim_outcome::in_flight);
  world->pass(1min);
  EXPECT_EQ(outcome(*two, other), claim_outcome::mismatch) << "when nobody knows";
  one->keys->complete(click, mine.token, placed);
  EXPECT_EQ(outcome(*two, other), claim_outcome::mismatch) << "when it is completed";
  EXPECT_EQ(outcome(*two, first), claim_outcome::completed);
  EXPECT_EQ(outcome(*two), claim_outcome::completed) << "nothing has to be the same";
}

// Proves I3
TEST_P(claimed_keys, of_two_callers_never_meet) {
  const std::vector<request_identity> all = {
      {"shop", "ann", "k"},  {"shop", "bob", "k"},   {"bank", "ann", "k"},   {"shop", "a", "nnk"},
      {"shop", "annk", "k"}, {"shop", "ann:k", "k"}, {"shop", "ann", ":kk"}, {"shopann", "k", "k"},
      {"shop", "", "k"},     {"shop:ann", "", "k"}};
  for (const auto& who : all) EXPECT_EQ(outcome(*one, {.who = who}), claim_outcome::claimed) << who.caller;
}

// Proves I7
TEST_P(claimed_keys, whose_owner_is_not_heard_of_are_unknown_and_never_free) {
  const auto mine = claim(*one);
  world->pass(31s);
  EXPECT_EQ(outcome(*two), claim_outcome::unknown);
  world->pass(24h * 400);
  EXPECT_EQ(outcome(*two), claim_outcome::unknown) << "time alone never frees it";
  EXPECT_EQ(one->keys->complete(click, mine.token, placed), claim_ended::done) << "its owner may still tell";
  EXPECT_EQ(outcome(*two), claim_outcome::completed);
}

// Proves I7
TEST_P(claimed_keys, of_unknown_outcome_are_asked_for_by_one_at_a_time) {
  const auto first = claim(*one);
  world->pass(31s);
  const claim_request asking{.who = click, .on_unknown = when_unknown::ask};
  const auto second = claim(*two, asking);
  ASSERT_EQ(second.outcome, claim_outcome::ask);
  EXPECT_GT(second.token.epoch, first.token.epoch);
  EXPECT_EQ(outcome(*one, asking), claim_outcome::in_flight);
  EXPECT_EQ(one->keys->complete(click, first.token, placed), claim_ended::lost) << "it was superseded";
  EXPECT_EQ(one->keys->renew(click, first.token, 1min), claim_ended::lost);
  EXPECT_EQ(one->keys->release(click, first.token), claim_ended::lost);
  EXPECT_EQ(two->keys->complete(click, second.token, placed), claim_ended::done);
  EXPECT_EQ(claim(*one).what, placed);
}

// Proves I7
TEST_P(claimed_keys, are_reissued_only_where_the_claim_says_so) {
  claim(*one);
  world->pass(31s);
  const auto again = claim(*two, {.who = click, .on_unknown = when_unknown::reissue});
  EXPECT_EQ(again.outcome, claim_outcome::claimed);
  EXPECT_EQ(outcome(*one, {.who = click, .on_unknown = when_unknown::reissue}), claim_outcome::in_flight);
}

// Proves I7
TEST_P(claimed_keys, are_free_again_when_their_owner_says_that_nothing_was_done) {
  const auto mine = claim(*one);
  EXPECT_EQ(one->keys->release(click, mine.token), claim_ended::done);
  EXPECT_EQ(one->keys->release(click, mine.token), claim_ended::done)
      << "repeated, because its answer was lost";
  EXPECT_TRUE(world->is_empty());
  world->pass(1ms);
  const auto next = claim(*two);
  EXPECT_EQ(next.outcome, claim_outcome::claimed);
  EXPECT_GT(next.token.epoch, mine.token.epoch);
  EXPECT_EQ(one->keys->release(click, mine.token), claim_ended::lost);
  EXPECT_EQ(one->keys->complete(click, mine.token, placed), claim_ended::lost);
  EXPECT_EQ(outcome(*one), claim_outcome::in_flight);
}

// Proves I7
TEST_P(claimed_keys, stay_with_an_owner_that_renews) {
  const auto mine = claim(*one, {.who = click, .lease = 30s});
  for (int n = 0; n < 3; ++n) {
    world->pass(20s);
    EXPECT_EQ(one->keys->renew(click, mine.token, 30s), claim_ended::done);
    EXPECT_EQ(outcome(*two), claim_outcome::in_flight);
  }
  one->keys->complete(click, mine.token, placed);
  EXPECT_EQ(one->keys->renew(click, mine.token, 30s), claim_ended::lost)
      << "there is nothing to hold any more";
}

// Proves I4
TEST_P(claimed_keys, may_be_asked_for_again_under_the_same_run_when_the_answer_was_lost) {
  const auto run = one->keys->env().ids->next();
  const claim_request named{.who = click, .run = run};
  const auto first = claim(*one, named);
  const auto again = claim(*two, named);
  EXPECT_EQ(again.outcome, claim_outcome::claimed);
  EXPECT_EQ(again.token, first.token);
  EXPECT_EQ(outcome(*two), claim_outcome::in_flight) << "another run is another call";
  EXPECT_EQ(one->keys->complete(click, first.token, placed), claim_ended::done);
  EXPECT_EQ(two->keys->complete(click, first.token, placed), claim_ended::done);
  EXPECT_EQ(two->keys->complete(click, first.token, {.status = 500}), claim_ended::differs);
  EXPECT_EQ(claim(*two).what, placed) << "the first answer stays";
}

// Proves I7: whoever is told a lease has it.
TEST_P(claimed_keys, that_are_asked_for_again_under_the_same_run_hold_for_the_lease_they_are_told) {
  const claim_request named{.who = click, .lease = 30s, .run = one->keys->env().ids->next()};
  const claim_request rival{.who = click, .on_unknown = when_unknown::reissue};
  const auto first = claim(*one, named);
  for (const auto silent : {20s, 25s, 60s}) {
    world->pass(silent);
    const auto again = claim(*two, named);
    EXPECT_EQ(again.outcome, claim_outcome::claimed);
    EXPECT_EQ(again.token, first.token);
    EXPECT_EQ(again.lease, 30s);
    const auto other = claim(*one, rival);
    EXPECT_EQ(other.outcome, claim_outcome::in_flight) << "after " << silent.count() << " s";
    EXPECT_GT(other.lease, 25s);
  }
  one->keys->renew(click, first.token, 10min);
  EXPECT_GT(claim(*two, named).lease, 9min) << "what it has is not cut short by a copy that comes late";
  EXPECT_GT(claim(*one, rival).lease, 9min);
}

// Proves I7
TEST_P(claimed_keys, that_were_taken_over_or_completed_are_not_had_again_under_the_former_run) {
  const claim_request named{.who = click, .lease = 30s, .run = one->keys->env().ids->next()};
  claim(*one, named);
  world->pass(31s);
  const auto taken = claim(*two, {.who = click, .on_unknown = when_unknown::reissue});
  EXPECT_EQ(outcome(*one, named), claim_outcome::in_flight);
  world->pass(31s);
  EXPECT_EQ(outcome(*one, named), claim_outcome::unknown);
  EXPECT_EQ(two->keys->complete(click, taken.token, placed), claim_ended::done);
  EXPECT_EQ(outcome(*one, named), claim_outcome::completed);
}

// Proves I4, I7
TEST_P(claimed_keys, that_are_asked_for_again_together_all_hold_for_the_lease_they_are_told) {
  std::vector<std::string> names;
  for (int n = 0; n < 8; ++n) names.push_back("k-" + std::to_string(n));
  std::vector<claim_call> calls;
  for (const auto& name : names)
    calls.emplace_back(
        claim_request{.who = {"shop", "ann", name}, .lease = 30s, .run = one->keys->env().ids->next()});
  one->keys->run(calls);
  world->pass(20s);
  for (const auto& got : two->keys->run(calls))
    EXPECT_EQ(std::get<claim_result>(got).outcome, claim_outcome::claimed);
  for (const auto& name : names) EXPECT_GT(claim(*one, {.who = {"shop", "ann", name}}).lease, 25s) << name;
}

// Its answer was lost, but not that somebody may have done the work before. Proves I4, I7
TEST_P(claimed_keys, that_were_taken_over_to_be_asked_about_are_so_as_well_when_the_call_is_repeated) {
  claim(*one);
  world->pass(31s);
  const claim_request asking{
      .who = click, .on_unknown = when_unknown::ask, .run = one->keys->env().ids->next()};
  const auto first = claim(*two, asking);
  ASSERT_EQ(first.outcome, claim_outcome::ask);
  for (auto* who : {&one, &two}) {
    const auto again = claim(**who, asking);
    EXPECT_EQ(again.outcome, claim_outcome::ask);
    EXPECT_EQ(again.token, first.token);
    EXPECT_EQ(again.lease, first.lease);
  }
  EXPECT_EQ(two->keys->complete(click, first.token, placed), claim_ended::done);
  EXPECT_EQ(claim(*two, asking).outcome, claim_outcome::completed);
}

// Proves I4
TEST_P(claimed_keys, that_come_together_are_each_answered_for_themselves) {
  const auto old = claim(*one, {.who = {"shop", "ann", "old"}});
  const auto done = claim(*one, {.who = {"shop", "ann", "done"}});
  one->keys->complete({"shop", "ann", "done"}, done.token, placed);
  const std::vector<claim_call> calls = {
      claim_request{.who = {"shop", "ann", "new"}},
      claim_release{{"shop", "ann", "nobody's"}, old.token.run},
      claim_request{.who = {"shop", "ann", "done"}},
      claim_request{.who = {"shop", "ann", "new"}},
      claim_completion{{"shop", "ann", "old"}, old.token.run, placed},
      claim_renewal{{"shop", "ann", "done"}, done.token.run},
  };
  const auto answers = two->keys->run(calls);
  ASSERT_EQ(answers.size(), calls.size());
  const auto result = [&](std::size_t n) { return std::get<claim_result>(answers[n]).outcome; };
  EXPECT_EQ(result(0), claim_outcome::claimed);
  EXPECT_EQ(std::get<claim_ended>(answers[1]), claim_ended::done);
  EXPECT_EQ(result(2), claim_outcome::completed);
  EXPECT_EQ(result(3), claim_outcome::in_flight);
  EXPECT_EQ(std::get<claim_ended>(answers[4]), claim_ended::done);
  EXPECT_EQ(std::get<claim_ended>(answers[5]), claim_ended::lost);
}

// What a neighbour of the batch meets is no reason to ask about the others. Proves I4, I7
TEST_P(claimed_keys, that_nobody_had_are_not_asked_about_because_of_others_in_their_batch) {
  claim(*one, {.who = {"shop", "ann", "busy"}});
  std::vector<claim_call> calls;
  for (const auto* key : {"new 1", "busy", "new 2"})
    calls.push_back(claim_request{.who = {"shop", "ann", key}, .on_unknown = when_unknown::ask});
  const auto answers = two->keys->run(calls);
  const auto result = [&](std::size_t n) { return std::get<claim_result>(answers.at(n)).outcome; };
  EXPECT_EQ(result(0), claim_outcome::claimed);
  EXPECT_EQ(result(1), claim_outcome::in_flight);
  EXPECT_EQ(result(2), claim_outcome::claimed);
}

// Proves I4
TEST_P(claimed_keys, of_one_batch_may_be_the_same_one) {
  const auto run = one->keys->env().ids->next(), other = one->keys->env().ids->next();
  const std::vector<claim_call> calls = {
      claim_request{.who = click, .fingerprint = "POST /orders 1", .run = run},
      claim_request{.who = click, .fingerprint = "POST /orders 1", .run = run},
      claim_request{.who = click, .fingerprint = "POST /orders 1", .run = other},
      claim_request{.who = click, .fingerprint = "POST /orders 2", .run = other},
      claim_request{.who = {"shop", "ann", "k-2"}},
  };
  const auto answers = one->keys->run(calls);
  const auto result = [&](std::size_t n) { return std::get<claim_result>(answers[n]); };
  EXPECT_EQ(result(0).outcome, claim_outcome::claimed);
  EXPECT_EQ(result(1).outcome, claim_outcome::claimed) << "the same call, repeated";
  EXPECT_EQ(result(1).token, result(0).token);
  EXPECT_EQ(result(2).outcome, claim_outcome::in_flight);
  EXPECT_EQ(result(3).outcome, claim_outcome::mismatch);
  EXPECT_EQ(result(4).outcome, claim_outcome::claimed) << "and nobody else is held up";
  const std::vector<claim_call> twice(2, claim_completion{click, run, placed});
  for (const auto& ended : two->keys->run(twice)) EXPECT_EQ(std::get<claim_ended>(ended), claim_ended::done);
  EXPECT_EQ(claim(*one).what, placed);
}

// Proves I4, I7
TEST_P(claimed_keys, of_one_batch_are_completed_if_they_are_held_and_lost_if_not) {
  const auto held = claim(*one, {.who = {"shop", "ann", "held"}}).token.run;
  const auto done = claim(*one, {.who = {"shop", "ann", "done"}});
  one->keys->complete({"shop", "ann", "done"}, done.token, {.status = 202});
  const auto freed = claim(*one, {.who = {"shop", "ann", "freed"}});
  one->keys->release({"shop", "ann", "freed"}, freed.token);
  const auto late = claim(*one, {.who = {"shop", "ann", "late"}, .lease = 1s}).token.run;
  world->pass(2s);
  claim(*two, {.who = {"shop", "ann", "late"}, .on_unknown = when_unknown::reissue});
  const std::vector<claim_call> calls = {
      claim_completion{{"shop", "ann", "late"}, late, placed},
      claim_completion{{"shop", "ann", "held"}, held, placed},
      claim_completion{{"shop", "ann", "done"}, done.token.run, placed},
      claim_completion{{"shop", "ann", "nobody's"}, held, placed},
      claim_completion{{"shop", "ann", "freed"}, freed.token.run, placed},
  };
  std::vector<claim_ended> ended;
  const auto answers = one->keys->run(calls);
  for (const auto& one_of : answers) {
    const auto* end = std::get_if<claim_ended>(&one_of);
    ended.push_back(end != nullptr ? *end : claim_ended::differs);
  }
  EXPECT_EQ(ended, (std::vector{claim_ended::lost, claim_ended::done, claim_ended::differs, claim_ended::lost,
                                claim_ended::lost}));
  EXPECT_EQ(std::get<claim_result>(answers[2]).what.status, 202) << "the recorded one";
  EXPECT_EQ(claim(*two, {.who = {"shop", "ann", "held"}}).what, placed);
  EXPECT_EQ(claim(*two, {.who = {"shop", "ann", "done"}}).what.status, 202) << "the first answer stays";
  EXPECT_EQ(outcome(*two, {.who = {"shop", "ann", "late"}}), claim_outcome::in_flight);
  EXPECT_EQ(outcome(*two, {.who = {"shop", "ann", "freed"}}), claim_outcome::claimed) << "nothing was left";
}

// Proves I4
TEST_P(claimed_keys, of_batches_in_opposite_orders_never_wait_in_a_circle) {
  constexpr int rounds = 15, keys = 32;
  std::vector<std::string> names;
  for (int n = 0; n < keys; ++n) names.push_back("k-" + std::to_string(n));
  const auto run = one->keys->env().ids->next();
  std::latch start(2);
  const auto work = [&](claims_process& by, bool backwards) {
    auto order = names;
    if (backwards) std::ranges::reverse(order);
    start.arrive_and_wait();
    for (int round = 0; round < rounds; ++round) {
      const auto caller = std::to_string(round);
      std::vector<claim_call> claims, completions;
      for (const auto& name : order) {
        claims.emplace_back(claim_request{.who = {"shop", caller, name}, .run = run});
        completions.emplace_back(claim_completion{{"shop", caller, name}, run, placed});
      }
      by.keys->run(claims);
      for (const auto& ended : by.keys->run(completions))
        EXPECT_EQ(std::get<claim_ended>(ended), claim_ended::done);
    }
  };
  std::jthread other([&] { work(*two, true); });
  work(*one, false);
}

// Proves I4: completions beside renewals, beside releases, and beside claims that come again
TEST_P(claimed_keys, of_mixed_batches_never_wait_in_a_circle) {
  constexpr int rounds = 8, keys = 32;
  const auto run = one->keys->env().ids->next();
  std::barrier together(2);
  const auto other_call = [&](int kind, const request_identity& who) -> claim_call {
    if (kind == 0) return claim_renewal{who, run};
    if (kind == 1) return claim_release{who, run};
    return claim_request{.who = who, .run = run};
  };
  const auto work = [&](claims_process& by, int odd) {
    for (int round = 0; round < rounds * 3; ++round) {
      const auto caller = "mixed " + std::to_string(round);
      std::vector<std::string> names;
      for (int n = 0; n < keys; ++n) names.push_back("k-" + std::to_string(n));
      std::vector<claim_call> claims, mixed;
      for (int n = 0; n < keys; ++n) {
        const request_identity who{"shop", caller, names[static_cast<std::size_t>(n)]};
        claims.emplace_back(claim_request{.who = who, .run = run});
        mixed.push_back(n % 2 == odd ? claim_call(claim_completion{who, run, placed})
                                     : other_call(round % 3, who));
      }
      EXPECT_NO_THROW(by.keys->run(claims));
      together.arrive_and_wait();
      EXPECT_NO_THROW(by.keys->run(mixed)) << round;
    }
  };
  std::jthread other([&] { work(*two, 1); });
  work(*one, 0);
}

// Proves I4, V1
TEST_P(claimed_keys, are_had_by_one_of_fifty_at_once) {
  std::vector<std::unique_ptr<claims_process>> processes;
  for (int n = 0; n < 3; ++n) processes.push_back(world->open());
  std::atomic<int> had = 0, told = 0;
  {
    std::latch start(50);
    std::vector<std::jthread> threads;
    for (int n = 0; n < 50; ++n)
      threads.emplace_back([&, n] {
        start.arrive_and_wait();
        auto& own = *processes[static_cast<std::size_t>(n) % processes.size()];
        const auto got = claim(own);
        if (got.outcome == claim_outcome::claimed) {
          ++had;
          own.act("k-1");
          own.keys->complete(click, got.token, placed);
        } else {
          ++told;
          EXPECT_TRUE(got.outcome == claim_outcome::in_flight || got.outcome == claim_outcome::completed);
        }
      });
  }
  EXPECT_EQ(had, 1);
  EXPECT_EQ(told, 49);
  EXPECT_EQ(one->acted("k-1"), 1);
}

// Proves I2
TEST_P(claimed_keys, whose_record_was_changed_are_an_error_and_not_an_answer) {
  const auto mine = claim(*one);
  one->keys->complete(click, mine.token, placed);
  world->falsify_answers();
  EXPECT_EQ(code_of([&] { claim(*two); }), errc::store_corrupt);
}

// Proves I4: in Redis the others of its batch were had.
TEST_P(claimed_keys, that_came_with_one_whose_record_was_changed_are_had_when_they_are_repeated) {
  const auto mine = claim(*one);
  one->keys->complete(click, mine.token, placed);
  world->falsify_answers();
  const claim_request other{.who = {"shop", "ann", "k-2"}, .run = one->keys->env().ids->next()};
  const std::vector<claim_call> calls = {other, claim_request{.who = click}};
  const auto run_all = [&] {
    for (const auto& told : two->keys->run(calls))
      if (const auto* failed = std::get_if<claim_failed>(&told)) throw error(failed->why);
  };
  EXPECT_EQ(code_of(run_all), errc::store_corrupt);
  EXPECT_EQ(outcome(*two, other), claim_outcome::claimed);
}

// Proves I4
TEST_P(claimed_keys, that_make_no_sense_are_refused_before_anybody_is_asked) {
  const std::string long_key(256, 'k');
  EXPECT_EQ(code_of([&] { claim(*one, {.who = {"shop", "ann", ""}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { claim(*one, {.who = {"shop", "ann", long_key}}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { claim(*one, {.who = {"", "ann", "k"}}); }), errc::invalid_name);
  EXPECT_EQ(code_of([&] { claim(*one, {.who = click, .lease = 0s}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { claim(*one, {.who = click, .keep = 0s}); }), errc::invalid_argument);
  const auto mine = claim(*one);
  const answer huge{.body = std::string(claims::answer_bytes_max + 1, 'x')};
  EXPECT_EQ(code_of([&] { one->keys->complete(click, mine.token, huge); }), errc::payload_too_large);
}

// Proves I4, I7
TEST_P(claimed_keys, have_one_effect_at_every_fault_point) {
  one.reset();
  two.reset();
  const auto found = testing::explore({
      .prepare = [&] { world->clear(); },
      .run = [&](fault_points& faults) { see_through(*world->open(&faults)); },
      .recover =
          [&] {
            world->pass(1h);
            see_through_after_a_kill(*world);
          },
      .check =
          [&](const std::string& where) {
            const auto own = world->open();
            EXPECT_EQ(own->acted("k-1"), 1) << where;
            EXPECT_EQ(own->keys->claim({.who = click}).outcome, claim_outcome::completed) << where;
          },
  });
  EXPECT_EQ(std::ranges::count(found.points, "claims.commit.before"),
            GetParam() == claims_store::postgres ? 4 : 3)
      << "two claims and a completion; on PostgreSQL the second claim is looked into";
}

// Proves I4, I7
TEST_P(claimed_keys, left_behind_by_one_that_died_have_one_effect_at_every_fault_point) {
  one.reset();
  two.reset();
  for (const bool acted : {true, false}) {
    testing::explore({
        .prepare =
            [&] {
              world->clear();
              const auto dies = world->open();
              claim(*dies);
              if (acted) dies->act("k-1");
              world->pass(1h);
            },
        .run = [&](fault_points& faults) { see_through(*world->open(&faults)); },
        .recover =
            [&] {
              world->pass(1h);
              see_through_after_a_kill(*world);
            },
        .check =
            [&](const std::string& where) {
              const auto own = world->open();
              EXPECT_EQ(own->acted("k-1"), 1) << where << (acted ? ", it had acted" : "");
              EXPECT_EQ(own->keys->claim({.who = click}).outcome, claim_outcome::completed) << where;
            },
    });
  }
}

// Fifty callers at once, on five processes' connections. Whoever finds it at work for too long gives up: its
// owner may be the one that has failed, and its lease is long.
void storm(claims_world& world, fault_points* faults) {
  std::vector<std::unique_ptr<claims_process>> processes;
  for (int n = 0; n < 5; ++n) processes.push_back(world.open(faults));
  std::latch start(50);
  std::vector<std::jthread> threads;
  for (int n = 0; n < 50; ++n)
    threads.emplace_back([&, n] {
      start.arrive_and_wait();
      try {
        see_through(*processes[static_cast<std::size_t>(n) % processes.size()]);
      } catch (const error& e) {
        EXPECT_TRUE(e.retryable()) << e.what();
      }
    });
}

// Proves I4, I7, V3
TEST_P(claimed_keys, of_fifty_callers_have_one_effect_at_every_fault_point) {
  one.reset();
  two.reset();
  testing::explore({
      .prepare = [&] { world->clear(); },
      .run =
          [&](fault_points& faults) {
            shared_faults shared(faults, 2);
            storm(*world, &shared);
          },
      .recover =
          [&] {
            world->pass(1h);
            storm(*world, nullptr);
            see_through_after_a_kill(*world);
          },
      .check =
          [&](const std::string& where) {
            const auto own = world->open();
            EXPECT_EQ(own->acted("k-1"), 1) << where;
            EXPECT_EQ(own->keys->claim({.who = click}).outcome, claim_outcome::completed) << where;
          },
  });
}

// Proves I4: a failure while an outcome is looked for does not make it known.
TEST_P(claimed_keys, are_in_doubt_where_the_answer_was_lost_and_the_store_is_away_after_it) {
  lost_answer faults("claims.commit");
  EXPECT_TRUE(leaves_in_doubt([&] { claim(*world->open(&faults)); }));
  EXPECT_EQ(outcome(*one), claim_outcome::in_flight) << "it was had";
}

// Nothing but a look at what comes.
struct seen_claims final : keys::batched_claims {
  std::vector<claim_answer> run_checked(std::span<const claim_call> calls) override {
    for (const auto& one : calls) named = named && std::get<claim_request>(one).run.has_value();
    return std::vector<claim_answer>(calls.size(), claim_result{});
  }
  const environment& env() const override { return around; }

  environment around;
  bool named = true;
};

// A batch that fails is repeated in parts. Proves I4
TEST(batched_claims, are_named_before_they_go_to_the_store) {
  seen_claims all;
  all.claim({.who = click});
  EXPECT_TRUE(all.named);
}

INSTANTIATE_TEST_SUITE_P(stores, claimed_keys,
                         ::testing::Values(claims_store::sqlite, claims_store::postgres, claims_store::redis),
                         name_of);

}  // namespace
}  // namespace settle::test

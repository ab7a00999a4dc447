// Claims of one batch in PostgreSQL, where one statement serves all of them, and goes with the commit.
#include <gtest/gtest.h>

#include "queries/once.hpp"
#include "settle/postgres.hpp"
#include "sql/columns.hpp"
#include "support/claims_fixture.hpp"
#include "support/expect_error.hpp"

namespace settle::test {
namespace {

struct claimed_together : claimed_keys {};
INSTANTIATE_TEST_SUITE_P(servers, claimed_together, ::testing::Values(claims_store::postgres), name_of);

// Proves I4
TEST_P(claimed_together, are_found_by_their_identities_however_small_the_table_was) {
  const parameters row{blob{std::string(32, 'i')}, "run", 1, 201, "[]", blob{"body"},
                       blob{std::string(32, 'h')}};
  const std::vector<parameters> rows(3, row);
  const auto plan = [&] {
    const auto text = "explain " + std::string(queries::once::complete_claims.postgres);
    auto tx = one->db->begin();
    tx.execute(queries::once::find_by_identity);
    const auto lines = tx.execute(statement{{"explain", "", text}, columns_of(rows)});
    std::string all;
    for (std::size_t n = 0; n < lines.size(); ++n) all += lines[n][0].text() + "\n";
    return all;
  };
  const auto expect_by_identity = [&](const std::string& when) {
    const auto shown = plan();
    EXPECT_NE(shown.find("Index Cond: (identity = ANY"), std::string::npos) << when << ":\n" << shown;
    EXPECT_EQ(shown.find("Seq Scan"), std::string::npos) << when << ":\n" << shown;
    EXPECT_EQ(shown.find("Bitmap"), std::string::npos) << when << ":\n" << shown;
  };
  expect_by_identity("while nothing is known about it");
  claim(*one);
  auto tx = one->db->begin();
  tx.execute("analyze settle.idempotency_claims");
  tx.commit();
  expect_by_identity("while it is known to have one row");
}

// Proves I4
TEST_P(claimed_together, are_so_behind_a_pooler_too) {
  const auto pooled = postgres::open(world->conninfo(), {.prepared_statements = false});
  const auto keys = open_claims(*pooled);
  const auto run = pooled->env().ids->next();
  const std::vector<claim_call> claims = {claim_request{.who = click, .fingerprint = "POST", .run = run},
                                          claim_request{.who = {"shop", "ann", "k-2"}, .run = run}};
  for (const auto& got : keys->run(claims))
    EXPECT_EQ(std::get<claim_result>(got).outcome, claim_outcome::claimed);
  const std::vector<claim_call> completions = {
      claim_completion{click, run, placed}, claim_completion{{"shop", "ann", "k-2"}, run, {.status = 204}}};
  for (const auto& ended : keys->run(completions)) EXPECT_EQ(std::get<claim_ended>(ended), claim_ended::done);
  EXPECT_EQ(claim(*two, {.who = click, .fingerprint = "POST"}).what, placed);
  EXPECT_EQ(claim(*two, {.who = {"shop", "ann", "k-2"}}).what, answer{.status = 204});
}

// The store is away when the effect is to happen for the n-th time. The answer to the first one may be lost.
class away_later final : public fault_points {
 public:
  away_later(int nth, bool first_is_lost) : nth_(nth), first_is_lost_(first_is_lost) {}

  void reached(std::string_view point) override {
    if (point == "claims.commit.before" && ++begun_ == nth_) throw error(errc::store_unavailable, "away");
    if (point == "claims.commit.after" && std::exchange(first_is_lost_, false))
      throw error::with_unknown_outcome(errc::store_unavailable, "no answer");
  }

 private:
  int nth_;
  bool first_is_lost_;
  int begun_ = 0;
};

// Proves I4: else it would be nobody's until its lease is over, and its outcome unknown from then on.
TEST_P(claimed_together, that_were_had_are_told_when_another_one_of_the_batch_cannot_be_looked_into) {
  claim(*one);
  away_later faults(2, false);
  const auto other = world->open(&faults);
  const request_identity fresh{click.service, click.caller, "k-fresh"};
  const std::vector<claim_call> calls{claim_request{.who = click}, claim_request{.who = fresh}};
  const auto answers = other->keys->run(calls);
  EXPECT_EQ(std::get<claim_failed>(answers[0]).why.code(), errc::store_unavailable);
  const auto& had = std::get<claim_result>(answers[1]);
  ASSERT_EQ(had.outcome, claim_outcome::claimed);
  EXPECT_EQ(one->keys->complete(fresh, had.token, {201}), claim_ended::done);
}

// Proves I4
TEST_P(claimed_together, are_in_doubt_where_the_answer_was_lost_and_they_cannot_be_looked_into) {
  away_later faults(3, true);
  EXPECT_TRUE(leaves_in_doubt([&] { claim(*world->open(&faults)); }));
  EXPECT_EQ(outcome(*one), claim_outcome::in_flight) << "it was had";
}

// Proves I4: else both would run, the first with a token that holds nothing.
TEST_P(claimed_together, of_one_key_are_had_by_the_one_whose_row_it_is) {
  claim(*one);
  const auto first = one->keys->env().ids->next(), second = one->keys->env().ids->next();
  auto tx = one->db->begin();
  tx.execute(
      "create or replace function settle.let_go() returns trigger language plpgsql as "
      "$$ begin delete from settle.idempotency_claims where identity = new.identity; return new; end $$");
  tx.execute(
      "create or replace trigger let_go before insert on settle.idempotency_claims for each row when "
      "(new.run = '" +
      second.text() + "') execute function settle.let_go()");
  tx.commit();
  const std::vector<claim_call> calls{claim_request{.who = click, .run = first},
                                      claim_request{.who = click, .run = second}};
  const auto answers = two->keys->run(calls);
  EXPECT_EQ(std::get<claim_result>(answers[0]).outcome, claim_outcome::in_flight);
  EXPECT_EQ(std::get<claim_result>(answers[1]).outcome, claim_outcome::claimed);
  EXPECT_EQ(std::get<claim_result>(answers[1]).token.run, second);
}

// Proves I4
TEST_P(claimed_together, that_were_completed_are_told_when_another_one_cannot_be_looked_into) {
  const auto mine = claim(*one);
  away_later faults(2, false);
  const std::vector<claim_call> calls{claim_completion{{"shop", "ann", "k-other"}, mine.token.run, placed},
                                      claim_completion{click, mine.token.run, placed}};
  const auto answers = world->open(&faults)->keys->run(calls);
  EXPECT_TRUE(std::holds_alternative<claim_failed>(answers[0]));
  EXPECT_EQ(std::get<claim_ended>(answers[1]), claim_ended::done);
}

// Proves I4
TEST_P(claimed_together, whose_record_is_damaged_fail_alone) {
  one->keys->complete(click, claim(*one).token, placed);
  auto tx = one->db->begin();
  tx.execute("update settle.idempotency_claims set body = '\\x00'");
  tx.commit();
  const request_identity held{"shop", "ann", "k-held"}, fresh{"shop", "ann", "k-fresh"};
  claim(*one, {.who = held});
  const std::vector<claim_call> calls{claim_request{.who = click}, claim_request{.who = held},
                                      claim_request{.who = fresh}};
  const auto answers = two->keys->run(calls);
  EXPECT_EQ(std::get<claim_failed>(answers[0]).why.code(), errc::store_corrupt);
  EXPECT_EQ(std::get<claim_result>(answers[1]).outcome, claim_outcome::in_flight);
  EXPECT_EQ(std::get<claim_result>(answers[2]).outcome, claim_outcome::claimed);
}

}  // namespace
}  // namespace settle::test

// "Did it commit?" is answered by a conflicting write; the answer has to outlive a power cut.
#include <gtest/gtest.h>

#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#include "simulation/sim_vfs.hpp"

namespace settle::sim {
namespace {

// Inserts the same key again and says whether it was there; then the power goes.
bool conflicts_then_power_goes(machine& computer) {
  process second(computer, "second");
  auto db = sqlite::open("a.db", {.vfs = second.vfs()});
  auto tx = db->begin();
  bool conflict = false;
  try {
    tx.execute("insert into t values ('k')");
  } catch (const error& e) {
    conflict = e.code() == errc::constraint_violated;
  }
  tx.rollback();
  computer.lose_power();
  return conflict;
}

// The first process dies at each single change of the disk in turn. Proves V3
TEST(conflict, what_it_has_confirmed_survives_a_power_loss) {
  int confirmed = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    for (int point = 1; point <= 24; ++point) {
      machine computer(static_cast<std::uint64_t>(seed));
      {
        process setup(computer, "setup");
        auto db = sqlite::open("a.db", {.vfs = setup.vfs()});
        auto tx = db->begin();
        tx.execute("create table t (id text primary key)");
        tx.commit();
      }
      {
        process first(computer, "first");
        try {
          auto db = sqlite::open("a.db", {.vfs = first.vfs()});
          first.at_point(point, [&] { first.kill(); });
          auto tx = db->begin();
          tx.execute("insert into t values ('k')");
          tx.commit();
        } catch (const error&) {
        }
      }
      if (!conflicts_then_power_goes(computer)) continue;
      ++confirmed;
      process judge(computer, "judge");
      auto db = sqlite::open("a.db", {.vfs = judge.vfs()});
      EXPECT_EQ(db->read().execute("select count(*) from t")[0][0].integer(), 1)
          << "seed " << seed << ", killed at change " << point;
    }
  }
  EXPECT_GT(confirmed, 100);
}

}  // namespace
}  // namespace settle::sim

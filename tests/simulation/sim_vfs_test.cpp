// The simulated disk and the VFS over it: what survives what.
#include "simulation/sim_vfs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#include "sqlite/handle.hpp"
#include "support/expect_error.hpp"

namespace settle::sim {
namespace {

using test::code_of;

std::string read_number(sqlite3* db, const char* sql) {
  std::string text;
  const auto read = [](void* out, int, char** columns, char**) {
    *static_cast<std::string*>(out) = columns[0] != nullptr ? columns[0] : "null";
    return 0;
  };
  if (sqlite3_exec(db, sql, read, &text, nullptr) != SQLITE_OK) return sqlite3_errmsg(db);
  return text;
}

// A file with one synced block, and one block that is not synced, after a power loss under this seed.
std::string after_power_loss(std::uint64_t seed) {
  disk files(seed);
  const auto file = files.create("a");
  files.sync_directory();
  file->write(0, std::string(2048, 's'));
  file->sync();
  file->write(2048, std::string(2048, 'u'));
  files.lose_power();
  return files.find("a")->current;
}

// Proves V3
TEST(sim_disk, synced_writes_survive_every_power_loss) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    EXPECT_EQ(after_power_loss(seed).substr(0, 2048), std::string(2048, 's')) << seed;
}

// Proves V3
TEST(sim_disk, unsynced_writes_are_kept_dropped_or_torn_by_the_seed) {
  std::set<std::string> fates;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto rest = after_power_loss(seed).substr(2048);
    EXPECT_EQ(after_power_loss(seed).substr(2048), rest) << "the seed decides, and nothing else";
    const auto arrived = static_cast<std::size_t>(std::ranges::count(rest, 'u'));
    EXPECT_EQ(arrived % disk::sector_bytes, 0U) << "sectors arrive whole";
    fates.insert(arrived == 0 ? "dropped" : arrived == 2048 ? "kept" : "torn");
  }
  EXPECT_EQ(fates, (std::set<std::string>{"dropped", "kept", "torn"}));
}

// Proves V3
TEST(sim_disk, a_file_whose_name_was_not_synced_may_vanish_or_stay) {
  std::set<bool> there;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    disk files(seed);
    files.create("new")->sync();
    files.lose_power();
    there.insert(files.find("new") != nullptr);
  }
  EXPECT_EQ(there.size(), 2U);
}

// Proves V3
TEST(sim_disk, a_deleted_file_may_come_back_until_the_directory_is_synced) {
  std::set<bool> back;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    disk files(seed);
    files.create("old");
    files.sync_directory();
    files.remove("old");
    files.lose_power();
    back.insert(files.find("old") != nullptr);
    files.remove("old");
    files.sync_directory();
    files.lose_power();
    EXPECT_EQ(files.find("old"), nullptr);
  }
  EXPECT_EQ(back.size(), 2U);
}

class sim_vfs : public ::testing::Test {
 protected:
  machine computer{7};

  static sqlite::handle open(const process& in) { return sqlite::open_handle({"a.db", in.vfs()}, 0); }
  void make_table() {
    const process setup(computer, "setup");
    const auto db = open(setup);
    sqlite::switch_to_wal(db.get());
    sqlite::run(db.get(), "create table t (n integer)");
  }
  std::string count() {
    const process judge(computer, "judge");
    const auto db = open(judge);
    EXPECT_EQ(read_number(db.get(), "pragma integrity_check"), "ok");
    return read_number(db.get(), "select count(*) from t");
  }
};

// Proves V3
TEST_F(sim_vfs, a_synced_commit_survives_a_power_loss) {
  make_table();
  for (int i = 1; i <= 20; ++i) {
    {
      process writer(computer, "writer");
      const auto db = open(writer);
      sqlite::run(db.get(), "insert into t values (1)");
      computer.lose_power();
    }
    EXPECT_EQ(count(), std::to_string(i));
  }
}

// Proves V3
TEST_F(sim_vfs, an_unsynced_commit_survives_a_crash_but_not_every_power_loss) {
  make_table();
  int vanished = 0;
  for (int i = 0; i < 20; ++i) {
    const auto before = count();
    {
      process writer(computer, "writer");
      const auto db = open(writer);
      sqlite::run(db.get(), "pragma synchronous = off");
      sqlite::run(db.get(), "insert into t values (1)");
      writer.kill();
    }
    // Nobody looks before the power goes: our way of opening a file would make the commit durable.
    computer.lose_power();
    vanished += count() == before ? 1 : 0;
  }
  {
    process writer(computer, "writer");
    const auto db = open(writer);
    sqlite::run(db.get(), "pragma synchronous = off");
    sqlite::run(db.get(), "delete from t");
    writer.kill();
  }
  EXPECT_EQ(count(), "0") << "a crash alone takes nothing";
  EXPECT_GT(vanished, 0);
  EXPECT_LT(vanished, 20);
}

// Rows of one page each, in a log that is copied into the file and then starts over on a connection that
// syncs as `level` says, while the power goes.
bool sound_after_log_starts_over(std::uint64_t seed, const char* level) {
  machine computer(seed);
  {
    const process service(computer, "service");
    const auto ours = sqlite::open_handle({"a.db", service.vfs()}, 0);
    sqlite::switch_to_wal(ours.get());
    const auto insert = [&](int rows) {
      for (int i = 0; i < rows; ++i) sqlite::run(ours.get(), "insert into t values (hex(randomblob(900)))");
    };
    const auto checkpoint = [&] {
      EXPECT_EQ(sqlite3_wal_checkpoint_v2(ours.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr),
                0);
    };
    sqlite::run(ours.get(), "create table t (text text)");
    checkpoint();
    insert(10);
    checkpoint();
    sqlite::run(ours.get(), level);
    insert(2);
    computer.lose_power();
  }
  const process judge(computer, "judge");
  try {
    const auto db = sqlite::open_handle({"a.db", judge.vfs()}, 0);
    return read_number(db.get(), "pragma integrity_check") == "ok";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::store_corrupt);
    return false;
  }
}

// Why a joined connection may sync late, but not never: with synchronous=off the new header of the log is
// not synced before its frames, and old pages come back over newer ones.
// Proves V3
TEST(sim_log, that_starts_over_is_sound_after_every_power_loss_unless_nobody_syncs_it) {
  int damaged = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    for (const auto* level : {"pragma synchronous = full", "pragma synchronous = normal"})
      EXPECT_TRUE(sound_after_log_starts_over(seed, level)) << level << ", seed " << seed;
    damaged += sound_after_log_starts_over(seed, "pragma synchronous = off") ? 0 : 1;
  }
  EXPECT_GT(damaged, 0);
}

// Proves V3
TEST_F(sim_vfs, handles_of_a_dead_process_only_return_errors) {
  make_table();
  process writer(computer, "writer");
  {
    const auto db = open(writer);
    sqlite::run(db.get(), "begin immediate");
    sqlite::run(db.get(), "insert into t values (1)");
    writer.kill();
    EXPECT_EQ(code_of([&] { sqlite::run(db.get(), "commit"); }), errc::store_unavailable);
    EXPECT_EQ(code_of([&] { sqlite::run(db.get(), "select * from t"); }), errc::store_unavailable);
  }
  EXPECT_EQ(count(), "0");
}

// Proves V3
TEST_F(sim_vfs, a_crash_drops_the_locks_of_the_process) {
  make_table();
  process first(computer, "first"), second(computer, "second");
  const auto one = open(first), two = open(second);
  sqlite::run(one.get(), "begin immediate");
  EXPECT_EQ(code_of([&] { sqlite::run(two.get(), "begin immediate"); }), errc::store_busy);
  first.kill();
  EXPECT_EQ(code_of([&] { sqlite::run(two.get(), "begin immediate"); }), std::nullopt);
}

// Proves V3
TEST_F(sim_vfs, a_reader_keeps_its_snapshot_while_another_process_writes) {
  make_table();
  const process first(computer, "first"), second(computer, "second");
  const auto reader = open(first), writer = open(second);
  sqlite::run(reader.get(), "begin");
  EXPECT_EQ(read_number(reader.get(), "select count(*) from t"), "0");
  sqlite::run(writer.get(), "insert into t values (1)");
  EXPECT_EQ(read_number(reader.get(), "select count(*) from t"), "0");
  sqlite::run(reader.get(), "commit");
  EXPECT_EQ(read_number(reader.get(), "select count(*) from t"), "1");
}

// Proves V3
TEST_F(sim_vfs, a_commit_is_whole_or_absent_wherever_the_power_goes) {
  make_table();
  int committed = 0;
  for (int point = 1; point <= 30; ++point) {
    {
      process writer(computer, "writer");
      const auto db = open(writer);
      writer.at_point(point, [&] { computer.lose_power(); });
      const bool said_so = sqlite3_exec(db.get(), "insert into t values (1), (2), (3)", nullptr, nullptr,
                                        nullptr) == SQLITE_OK;
      if (said_so) ++committed;
      writer.disarm();
    }
    const auto rows = std::stoi(count());
    EXPECT_EQ(rows % 3, 0) << point;
    EXPECT_GE(rows, 3 * committed) << point;
    committed = rows / 3;
  }
}

// Proves V3
TEST_F(sim_vfs, a_full_disk_fails_the_write_and_damages_nothing) {
  make_table();
  const process writer(computer, "writer");
  const auto db = open(writer);
  sqlite::run(db.get(), "insert into t values (1)");
  computer.files.faults.bytes_free = 1000;
  EXPECT_EQ(code_of([&] { sqlite::run(db.get(), "insert into t values (2)"); }), errc::store_full);
  computer.files.faults = {};
  sqlite::run(db.get(), "insert into t values (3)");
  EXPECT_EQ(read_number(db.get(), "select sum(n) from t"), "4");
}

// Proves V3
TEST_F(sim_vfs, a_database_on_it_leaves_nothing_on_the_real_disk) {
  const process alone(computer, "alone");
  const auto db = sqlite::open("a.db", {.vfs = alone.vfs()});
  auto tx = db->begin();
  tx.execute("create table t (n integer)");
  tx.commit();
  db->watch()->wait(std::chrono::milliseconds(1), {});
  for (const auto* name : {"a.db", "a.db-wal", "a.db-shm", "a.db-queue"})
    EXPECT_FALSE(std::filesystem::exists(name)) << name;
}

// Proves V3
TEST_F(sim_vfs, the_nth_write_and_the_nth_sync_fail_once) {
  make_table();
  const process writer(computer, "writer");
  const auto db = open(writer);
  computer.files.faults.failing_write = 1;
  EXPECT_EQ(code_of([&] { sqlite::run(db.get(), "insert into t values (1)"); }), errc::store_unavailable);
  computer.files.faults.failing_sync = 1;
  EXPECT_EQ(code_of([&] { sqlite::run(db.get(), "insert into t values (2)"); }), errc::store_unavailable);
  sqlite::run(db.get(), "insert into t values (3)");
  EXPECT_EQ(read_number(db.get(), "select sum(n) from t"), "3");
}

}  // namespace
}  // namespace settle::sim

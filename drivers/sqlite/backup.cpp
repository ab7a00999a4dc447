#include "sqlite/backup.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "queries/broker.hpp"
#include "settle/error.hpp"
#include "settle/sqlite.hpp"
#include "sqlite/handle.hpp"

namespace settle::inline v0::sqlite {
namespace {

constexpr int busy_ms = 10'000;

struct finish_backup {
  void operator()(sqlite3_backup* one) const noexcept { sqlite3_backup_finish(one); }
};

// The file's own sync is done by SQLite; this one makes its name durable.
void sync_folder_of(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = fd >= 0 && ::fsync(fd) == 0;
  const auto why = errno;
  if (fd >= 0) ::close(fd);
  if (!done)
    throw error(errc::store_unavailable,
                fmt::format("cannot sync {}: {}", folder.string(), std::strerror(why)));
}

}  // namespace

void copy_online(const std::string& from, const std::string& to) {
  if (std::filesystem::exists(to)) throw error(errc::invalid_argument, to + " exists already");
  const auto source = open_handle({from}, busy_ms);
  const auto target = open_handle({to}, busy_ms);
  const std::unique_ptr<sqlite3_backup, finish_backup> copy(
      sqlite3_backup_init(target.get(), "main", source.get(), "main"));
  if (!copy) throw_last_error(target.get(), "beginning a backup");
  // All pages in one step: one read snapshot, so writers neither wait nor make it start again.
  const int done = sqlite3_backup_step(copy.get(), -1);
  if (done != SQLITE_DONE)
    throw error(errc::store_unavailable, fmt::format("copying {} to {}: {}", from, to, sqlite3_errstr(done)));
  sync_folder_of(to);
}

std::int64_t prepare_restored_service(const std::string& path) {
  const auto db = open(path);
  auto tx = db->begin();
  tx.execute(queries::broker::rewind_outbox);
  tx.execute(queries::broker::forget_members);
  // Consumers know events by their numbers long after their records are gone. Numbers that were used after
  // the backup must not come again, also if the same backup is restored twice: go on from the time.
  constexpr std::int64_t numbers_per_second = std::int64_t{1} << 20;
  const auto seconds = tx.env().now().time_since_epoch() / std::chrono::seconds(1);
  tx.execute(queries::broker::make_outbox_counter);
  tx.execute(queries::broker::skip_numbers, {seconds * numbers_per_second});
  tx.execute(queries::broker::set_outbox_number, {seconds * numbers_per_second});
  tx.execute(queries::broker::set_tick, {seconds * numbers_per_second});
  const auto raised = tx.execute(queries::broker::raise_generation);
  tx.commit("restore.service");
  return raised[0][queries::broker::raise_generation_columns::generation].integer();
}

void prepare_restored_broker(const std::string& path) {
  const auto db = open(path);
  auto tx = db->begin();
  tx.execute(queries::broker::renew_broker_id);
  tx.execute(queries::broker::free_partitions);
  tx.execute(queries::broker::forget_members);
  tx.commit("restore.broker");
}

void put_in_place(const std::string& copy, const std::string& to) {
  {
    const auto only = open_handle({copy}, busy_ms);
    // A renamed file would not find its log again: fold it in. Nobody else is there to commit meanwhile.
    if (sqlite3_wal_checkpoint_v2(only.get(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr) !=
        SQLITE_OK)
      throw_last_error(only.get(), "folding in the log");
  }
  for (const auto* beside : {"-wal", "-shm", "-queue"}) std::filesystem::remove(copy + beside);
  std::error_code failed;
  std::filesystem::rename(copy, to, failed);
  if (failed)
    throw error(errc::store_unavailable,
                fmt::format("cannot rename {} to {}: {}", copy, to, failed.message()));
  sync_folder_of(to);
}

}  // namespace settle::inline v0::sqlite

// A SQLite file from outside: its header, its log, its disk.
#include <fmt/format.h>
#include <sys/vfs.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "doctor/doctor.hpp"
#include "doctor/words.hpp"

namespace settle::doctor {
namespace {

namespace fs = std::filesystem;

enum class header { empty, foreign, other_mode, wal };

// Bytes 18 and 19 of the header say 2 in WAL mode.
header read_header(const std::string& path) {
  std::array<char, 20> bytes{};
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), bytes.size());
  if (in.gcount() == 0) return header::empty;
  if (!std::string_view(bytes.data(), bytes.size()).starts_with("SQLite format 3")) return header::foreign;
  return bytes[18] == 2 && bytes[19] == 2 ? header::wal : header::other_mode;
}

// True if it may be opened: opening it in another mode would switch it.
bool find_journal_mode(const std::string& path, findings& into) {
  switch (read_header(path)) {
    case header::wal:
      into.push_back({.code = "fine", .title = "The file is in WAL mode"});
      return true;
    case header::foreign:
      into.push_back(
          {.level = severity::problem,
           .code = "not_sqlite",
           .title = "The file is not a SQLite database",
           .seen = path,
           .why = "nothing can be read from it",
           .advice = "If it should be one, it was overwritten: restore a backup (settle restore)."});
      return false;
    case header::empty:
      into.push_back({.level = severity::problem,
                      .code = "schema_missing",
                      .title = "The file is empty",
                      .seen = path,
                      .why = "Settle's tables are not there",
                      .fix = "settle migrate"});
      return false;
    case header::other_mode:
      break;
  }
  into.push_back({.level = severity::problem,
                  .code = "not_wal",
                  .title = "The file is not in WAL mode",
                  .seen = path,
                  .why = "readers and writers wait for each other, and nobody is woken by a commit",
                  .advice = "Stop every program that has it open; migrating switches the mode.",
                  .fix = "settle migrate"});
  return false;
}

void find_large_log(const std::string& path, const limits& normal, findings& into) {
  std::error_code failed;
  const auto found = fs::file_size(path + "-wal", failed);
  const auto bytes = failed ? std::int64_t{0} : static_cast<std::int64_t>(found);
  if (bytes <= normal.wal_bytes) {
    into.push_back({.code = "fine", .title = "The write-ahead log is small"});
    return;
  }
  into.push_back(
      {.level = severity::warning,
       .code = "wal_large",
       .title = "The write-ahead log is very large",
       .seen = fmt::format("{}-wal has {}", path, size_text(bytes)),
       .why = "a reader that never ends keeps checkpoints from emptying it: reading gets slower, and the "
              "disk fills",
       .advice = "End the program that keeps a read transaction open (fuser shows who has the file "
                 "open); the next commits checkpoint. Do not checkpoint with another program."});
}

// Magic numbers of statfs(2) for file systems whose locks or shared memory other hosts do not see.
const char* network_name(long type) {
  switch (static_cast<unsigned long>(type) & 0xffffffffUL) {
    case 0x6969UL:
      return "NFS";
    case 0xff534d42UL:
    case 0xfe534d42UL:
    case 0x517bUL:
      return "SMB";
    case 0x01021997UL:
      return "9P";
    case 0x00c36400UL:
      return "CephFS";
    case 0x0bd00bd0UL:
      return "Lustre";
    default:
      return nullptr;
  }
}

void find_disk(const std::string& path, const limits& normal, findings& into) {
  struct statfs disk{};
  if (::statfs(path.c_str(), &disk) != 0) return;
  if (const auto* name = network_name(disk.f_type))
    into.push_back(
        {.level = severity::problem,
         .code = "network_file_system",
         .title = fmt::format("The file is on a network file system ({})", name),
         .seen = path,
         .why = "WAL mode needs memory that all programs share; over a network the file gets damaged",
         .advice = "Move it to a local disk (settle backup, settle restore), or use PostgreSQL."});
  const auto free = static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_bsize);
  if (free < normal.free_bytes)
    into.push_back({.level = severity::warning,
                    .code = "disk_nearly_full",
                    .title = "The disk is nearly full",
                    .seen = fmt::format("{} free for {}", size_text(free), path),
                    .why = "when it is full nothing can be published or consumed; nothing is lost",
                    .advice = "Make room, or keep published events for a shorter time (outbox_keep)."});
  else
    into.push_back({.code = "fine", .title = fmt::format("{} of disk are free", size_text(free))});
}

}  // namespace

bool examine_file(const std::string& path, const limits& normal, findings& into) {
  const bool ready = find_journal_mode(path, into);
  find_large_log(path, normal, into);
  find_disk(path, normal, into);
  return ready;
}

}  // namespace settle::doctor

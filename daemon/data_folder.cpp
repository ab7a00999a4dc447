#include "daemon/data_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/startup_error.hpp"

namespace settle::daemon {
namespace {

constexpr std::string_view another = "; name another with --data";

struct filesystem {
  std::uint32_t magic;
  std::string_view name;
};

constexpr std::array network_filesystems{
    filesystem{0x6969, "NFS"},        filesystem{0x517b, "SMB"},       filesystem{0xff534d42, "CIFS"},
    filesystem{0xfe534d42, "SMB2"},   filesystem{0x01021997, "9p"},    filesystem{0x5346414f, "AFS"},
    filesystem{0x6b414653, "AFS"},    filesystem{0x73757245, "Coda"},  filesystem{0x564c, "NCP"},
    filesystem{0x00c36400, "CephFS"}, filesystem{0x0bd00bd0, "Lustre"}};

constexpr std::uint32_t fuse_magic = 0x65735546;
constexpr std::array<std::string_view, 12> network_fuse{"sshfs",  "glusterfs", "ceph",     "s3fs",
                                                        "rclone", "gcsfuse",   "davfs2",   "juicefs",
                                                        "mfs",    "curlftpfs", "smbnetfs", "goofys"};

// The type in the mount table of the filesystem that a file is on: only it tells FUSE filesystems apart.
std::string mount_type_of(const struct stat& file) {
  const auto device = fmt::format("{}:{}", major(file.st_dev), minor(file.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, of, type;
    words >> id >> parent >> of;
    const auto rest = line.find(" - ");
    if (of != device || rest == std::string::npos) continue;
    std::istringstream(line.substr(rest + 3)) >> type;
    return type;
  }
  return {};
}

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw startup_error(fmt::format("the data folder {} {}{}", path, why, another));
}

// False: it is there already.
bool create(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno == ENOENT) refuse(path, "cannot be created: its parent folder is not there; create that");
  refuse(path, fmt::format("cannot be created: {}", std::strerror(errno)));
}

// Why SQLite cannot be used in a folder; empty if it can.
std::string why_not_in(const std::string& folder) {
  struct stat about{};
  struct statfs on{};
  if (::stat(folder.c_str(), &about) != 0 || ::statfs(folder.c_str(), &on) != 0)
    return fmt::format("cannot be examined: {}", std::strerror(errno));
  const auto magic = static_cast<std::uint32_t>(on.f_type);
  const auto name = network_filesystem(on.f_type, magic == fuse_magic ? mount_type_of(about) : "");
  if (name.empty()) return {};
  return fmt::format("is on a network filesystem ({}), where SQLite's locks are not reliable", name);
}

}  // namespace

std::string_view network_filesystem(long magic, std::string_view mount_type) {
  const auto number = static_cast<std::uint32_t>(magic);
  const auto found = std::ranges::find(network_filesystems, number, &filesystem::magic);
  if (found != network_filesystems.end()) return found->name;
  if (number != fuse_magic || !mount_type.starts_with("fuse.")) return {};
  const auto driver = std::ranges::find(network_fuse, mount_type.substr(5));
  return driver == network_fuse.end() ? std::string_view() : *driver;
}

namespace {

void check_folder(const std::string& path, log_sink& log) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0)
    refuse(path, fmt::format("cannot be examined: {}", std::strerror(errno)));
  if (!S_ISDIR(about.st_mode)) refuse(path, "is not a folder");
  if (const auto why = why_not_in(path); !why.empty()) refuse(path, why);
  if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0)
    refuse(path, fmt::format("is not writable for this user (uid {}): {}", ::getuid(), std::strerror(errno)));
  constexpr mode_t others = 077;
  if ((about.st_mode & others) != 0)
    log.write(log_level::warning, "data_folder_open",
              {{"data", path},
               {"mode", fmt::format("{:04o}", about.st_mode & 07777)},
               {"advice", "other users may read events; chmod 700 closes it"}});
}

}  // namespace

data_folder::data_folder(const std::string& path, log_sink& log) : path_(path), is_new_(create(path)) {
  try {
    check_folder(path, log);
  } catch (...) {
    if (is_new_) ::rmdir(path.c_str());
    throw;
  }
}

data_folder::~data_folder() {
  if (is_new_) ::rmdir(path_.c_str());  // or not, if something is in it
}

void require_local_file(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path().string();
  const auto folder = parent.empty() ? std::string(".") : parent;
  if (const auto why = why_not_in(folder); !why.empty())
    throw startup_error(fmt::format("the folder {} of --database {}; name another file", folder, why));
}

namespace {

// Whether a descriptor is the file that has this name now.
bool is_at(int fd, const std::string& path) {
  struct stat own{}, there{};
  return ::fstat(fd, &own) == 0 && ::stat(path.c_str(), &there) == 0 && own.st_dev == there.st_dev &&
         own.st_ino == there.st_ino;
}

bool lock_whole(int fd) {
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

std::string owner_in(int fd) {
  std::array<char, 32> pid{};
  const auto got = ::pread(fd, pid.data(), pid.size() - 1, 0);
  std::string owner(pid.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  owner.erase(std::ranges::find_if_not(owner, [](char c) { return c >= '0' && c <= '9'; }), owner.end());
  return owner.empty() ? "unknown" : owner;
}

}  // namespace

folder_lock::folder_lock(const std::string& folder) : path_(folder + "/settled.lock") {
  try {
    do take(folder);
    while (!is_at(fd_, path_));  // a start that failed has removed it in this moment
    const auto pid = fmt::format("{}\n", ::getpid());
    if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, pid.data(), pid.size(), 0) < 0)
      throw startup_error(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    throw;
  }
}

void folder_lock::take(const std::string& folder) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  is_new_ = fd_ >= 0;
  if (fd_ < 0) fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) throw startup_error(fmt::format("cannot open {}: {}", path_, std::strerror(errno)));
  if (lock_whole(fd_)) return;
  if (errno != EAGAIN && errno != EACCES)
    throw startup_error(fmt::format("cannot lock {}: {}", path_, std::strerror(errno)));
  throw startup_error(fmt::format("another settled (pid {}) serves {}; stop it first, or {}", owner_in(fd_),
                                  folder, another.substr(2)));
}

// While it is locked: who has opened it meanwhile finds that it is not the file of this name any more.
folder_lock::~folder_lock() {
  if (is_new_) ::unlink(path_.c_str());
  [[maybe_unused]] const auto ignored = ::ftruncate(fd_, 0);
  ::close(fd_);
}

}  // namespace settle::daemon

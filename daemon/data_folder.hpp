// The folder that holds the two databases, and the lock that keeps a second daemon out of it.
#pragma once

#include <string>
#include <string_view>

#include "settle/environment.hpp"

namespace settle::daemon {

// Creates the folder (mode 0700) if needed. Throws startup_error if it cannot be used; warns if others may
// look into it.
void prepare_data_folder(const std::string& path, log_sink& log);

// The name of a network filesystem by its number in statfs(2) and its type in the mount table ("fuse.sshfs");
// empty if it is a local one. SQLite's locks and shared memory do not work between machines.
std::string_view network_filesystem(long magic, std::string_view mount_type);

// Throws startup_error if a database's file is, or would be, on a network filesystem.
void require_local_file(const std::string& path);

// Holds FOLDER/settled.lock while it lives; the kernel drops it when the process dies, however it dies.
// Throws startup_error that names the pid of the daemon that has it.
class folder_lock {
 public:
  explicit folder_lock(const std::string& folder);
  ~folder_lock();
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace settle::daemon

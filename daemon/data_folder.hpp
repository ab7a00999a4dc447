// The folder that holds the two databases, and the lock that keeps a second daemon out of it.
#pragma once

#include <string>
#include <string_view>

#include "settle/environment.hpp"

namespace settle::daemon {

// Creates the folder (mode 0700) if needed. Throws startup_error if it cannot be used; warns if others may
// look into it. A start that fails leaves no folder behind that was not there.
class data_folder {
 public:
  data_folder(const std::string& path, log_sink& log);
  ~data_folder();
  data_folder(const data_folder&) = delete;
  data_folder& operator=(const data_folder&) = delete;

  // The start has succeeded.
  void keep() { is_new_ = false; }

 private:
  std::string path_;
  bool is_new_ = false;
};

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

  // The start has succeeded: the file stays. Otherwise it goes, if it was not there before.
  void keep() { is_new_ = false; }

 private:
  void take(const std::string& folder);

  std::string path_;
  int fd_ = -1;
  bool is_new_ = false;
};

}  // namespace settle::daemon

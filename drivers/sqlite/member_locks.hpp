// Members of scopes that are alive: each holds a lock on a byte of a file beside the database.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sql/presence.hpp"

namespace settle::inline v0::sqlite {

class member_locks {
 public:
  // An empty path: for a file that no other process can see, where nobody is shown.
  explicit member_locks(std::string path) : path_(std::move(path)) {}

  // Creates the file. Each has a descriptor of its own, because a lock belongs to that.
  std::unique_ptr<sql::presence> show(const std::string& member) const;
  std::vector<std::string> gone_of(std::span<const std::string> members) const;

  static constexpr std::string_view mark = "@file";

 private:
  std::string path_;
};

}  // namespace settle::inline v0::sqlite

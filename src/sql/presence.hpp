// Proof that a member of a scope is gone, so that nobody waits for the lease of a process that has ended.
//
// A member shows itself by something that the system takes back when its process ends, however that happens:
// a lock on a byte of a file, or a lock of a session of the server. Whoever sees that lock free knows. One
// whose process was only stopped keeps it, and its lease decides. It says who tries, as leases do; who may
// write is decided by epochs, so a proof that was wrong (the file was deleted under its members, the session
// was ended) only repeats work.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "settle/database.hpp"

namespace settle::sql {

// Ends with it.
class presence {
 public:
  virtual ~presence() = default;
  // Whether others still see it.
  virtual bool lasts() = 0;
};

// Of a database; its driver implements it beside `database`. Threads: any number.
class member_register {
 public:
  virtual ~member_register() = default;

  // What the names of members that show themselves here end with. Others, of builds that could not do so or
  // where it did not work, are never taken for gone.
  virtual std::string_view mark() const = 0;

  // Nothing if it cannot be shown now.
  virtual std::unique_ptr<presence> show(const std::string& member) = 0;

  // Those of `members` of which it is certain. Finding out nothing is no failure.
  virtual std::vector<std::string> gone_of(std::span<const std::string> members) = 0;
};

// None where nothing can be proved: for files that no other process can see.
inline member_register* register_of(database& db) { return dynamic_cast<member_register*>(&db); }

}  // namespace settle::sql

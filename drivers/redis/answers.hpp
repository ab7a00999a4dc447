// What a server says, as Settle's values and errors.
#pragma once

#include <hiredis/hiredis.h>

#include <string>
#include <string_view>

#include "settle/error.hpp"
#include "settle/redis.hpp"

namespace settle::inline v0::redis {

// EVALSHA of a script that the server does not have.
class script_missing : public error {
 public:
  explicit script_missing(const std::string& what) : error(errc::statement_failed, what) {}
};

// The code for the first word of an error: "OOM", "READONLY", …
errc code_of_error(std::string_view text);

// An error that this connection will give for ever, and a new one perhaps not: after a failover the address
// leads to another server.
bool leads_elsewhere(const redisReply& said);

// Throws if it is an error.
reply read_answer(const redisReply& from, std::string_view command, std::string_view server);

// The value of `name:value` in the text of INFO; empty if it is not there.
std::string_view info_field(std::string_view info, std::string_view name);

}  // namespace settle::inline v0::redis

// What a server says of itself when it is greeted, and whether that is enough for us. Pure.
#pragma once

#include <amqp.h>

#include <set>
#include <string>

namespace settle::inline v0::rabbitmq {

struct server_facts {
  std::string product = {};
  std::string version = {};
  std::set<std::string, std::less<>> capabilities = {};
};

server_facts read_facts(const amqp_table_t& server_properties);

// The first number of its version; 0: it has none.
int major_version(const server_facts& of);

// What it lacks and what to do about it; empty: nothing.
std::string lack_of(const server_facts& server);

}  // namespace settle::inline v0::rabbitmq

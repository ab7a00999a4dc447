#include "redis/answers.hpp"

#include <fmt/format.h>

namespace settle::inline v0::redis {
namespace {

struct entry {
  std::string_view word;
  errc code;
  bool elsewhere = false;
};

// None of these has changed anything.
constexpr entry table[] = {
    {"OOM", errc::store_full},                      // maxmemory, and noeviction
    {"BUSY", errc::store_busy},                     // another script runs too long
    {"LOADING", errc::store_unavailable},           // the server has just started
    {"READONLY", errc::store_unavailable, true},    // a replica
    {"MASTERDOWN", errc::store_unavailable, true},  //
    {"NOREPLICAS", errc::store_unavailable},        // min-replicas-to-write
    {"MISCONF", errc::store_unavailable},           // it cannot write its files
    {"CLUSTERDOWN", errc::store_unavailable},       //
    {"TRYAGAIN", errc::store_unavailable},          //
    {"MOVED", errc::store_unavailable, true},       // a cluster: connect to the node that has the key
    {"NOAUTH", errc::store_unavailable, true},      // as on PostgreSQL: the server does not let us in
    {"WRONGPASS", errc::store_unavailable},         //
    {"NOPERM", errc::store_unavailable},            //
    {"NOSCRIPT", errc::statement_failed},
};

std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

entry entry_of(std::string_view text) {
  for (const auto& one : table)
    if (first_word(text) == one.word) return one;
  return {"", errc::statement_failed};
}

}  // namespace

errc code_of_error(std::string_view text) { return entry_of(text).code; }

bool leads_elsewhere(const redisReply& said) {
  return said.type == REDIS_REPLY_ERROR && entry_of({said.str, said.len}).elsewhere;
}

reply read_answer(const redisReply& from, std::string_view command, std::string_view server) {
  reply read;
  switch (from.type) {
    case REDIS_REPLY_NIL:
      break;
    case REDIS_REPLY_INTEGER:
      read.type = reply::kind::integer;
      read.integer = from.integer;
      break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      read.type = reply::kind::text;
      read.text.assign(from.str, from.len);
      break;
    case REDIS_REPLY_ARRAY:
      read.type = reply::kind::list;
      for (std::size_t i = 0; i < from.elements; ++i)
        read.items.push_back(read_answer(*from.element[i], command, server));
      break;
    default: {
      const std::string_view said(from.str, from.len);
      const auto text = fmt::format("{} on {}: {}", command, server, said);
      if (first_word(said) == "NOSCRIPT") throw script_missing(text);
      throw error(code_of_error(said), text);
    }
  }
  return read;
}

std::string_view info_field(std::string_view info, std::string_view name) {
  const auto key = fmt::format("\n{}:", name);
  const auto at = info.find(key);
  if (at == std::string_view::npos) return {};
  const auto from = at + key.size();
  return info.substr(from, info.find_first_of("\r\n", from) - from);
}

}  // namespace settle::inline v0::redis

// Where sagas stand: how many of which kind, which ones, and everything about one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/saga_timeline.hpp"
#include "settle/database.hpp"
#include "settle/saga_step.hpp"

namespace settle::inspect {

// Sagas of one kind in one status that have not ended.
struct open_sagas {
  std::string host;  // empty: nobody has noted what kind this is, and `type` is its number
  std::string type;
  std::int64_t version = 0;
  std::string status;
  std::int64_t sagas = 0;
  timestamp oldest{};          // when the one that has not moved for longest was written last
  std::int64_t processes = 0;  // that know this kind and are alive
};

std::vector<open_sagas> count_open_sagas(transaction& tx);

// All of one status.
std::int64_t sagas_in(const std::vector<open_sagas>& of, std::string_view status);

struct saga_line {
  std::int64_t no = 0;
  saga_id id;
  std::string host, type;
  std::int64_t version = 0;
  std::string entity;
  std::string status;
  std::string current_step;
  std::int64_t attempts = 0;  // failed ones of what it is at
  std::string last_error;
  std::optional<timestamp> due_at;  // when its owner looks at it next, if nothing else wakes it
  bool calling = false;             // a call is out
  std::optional<timestamp> deadline, ended_at;
  timestamp created_at{}, updated_at{};
  std::int64_t processes = 0;  // that know its kind and are alive

  bool has_ended() const { return ended_at.has_value(); }
  bool is_held() const { return status == "HELD"; }
};

struct saga_filter {
  std::vector<std::string> statuses = {};  // empty: those that have not ended
  std::string host = {}, type = {}, entity = {};
};

// The newest first; of those with numbers below `before`, if it is not 0.
std::vector<saga_line> list_sagas(database& db, const saga_filter& which, std::size_t at_most,
                                  std::int64_t before = 0);

struct saga_state {
  saga_line line;
  std::optional<std::string> ordered = {};  // by somebody, and not looked at by its owner yet
  std::string input = {};
  std::optional<std::string> result = {};
  std::optional<saga_id> parent = {};
  saga_timeline timeline = {};
};

std::optional<saga_state> read_saga(database& db, saga_id id);

// Whether anything is known of sagas here: hosts that have started some, or were ready to.
std::vector<std::string> saga_hosts(database& db);

struct delivered_event {
  std::optional<saga_id> saga;  // that it was given to
  std::string entity;
};
// Of an event in a host's mailbox; nothing: it is not there.
std::optional<delivered_event> find_delivered(database& db, const std::string& host,
                                              const std::string& event_id);

}  // namespace settle::inspect

// Sagas and their journals as they are stored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "saga/instance.hpp"
#include "settle/database.hpp"

namespace settle::sagas {

inline constexpr int shards = 16;

int shard_of(saga_id of);
// Of a host's type and version; the same in every process.
std::int64_t kind_number(std::string_view host, std::string_view type, int version);

// Of who starts a saga, as it is stored; nothing: he has no cause.
std::optional<std::string> origin_text(const origin& of);

std::string json_list(std::span<const std::int64_t> numbers);

// Of a kind, in these shards, at most so many: those that are due longest.
std::vector<stored_saga> find_due(transaction& tx, std::int64_t kind, const std::string& in_shards,
                                  timestamp now, std::size_t at_most);
std::vector<stored_saga> read_sagas(transaction& tx, std::span<const std::int64_t> numbers);
std::map<std::int64_t, journal> read_journals(transaction& tx, std::span<const std::int64_t> numbers);
std::optional<timestamp> next_due(transaction& tx, std::int64_t kind, const std::string& in_shards);

// Values of the queries add_row, for every row that is not stored yet, and write_saga.
void append_rows(std::vector<parameters>& to, const instance& of);
parameters saga_values(const instance& of);

// Removes finished sagas that ended before then. Returns how many.
std::int64_t sweep_ended(database& db, timestamp before, std::int64_t at_most);

}  // namespace settle::sagas

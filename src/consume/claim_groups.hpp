// How the claims of a batch are put into statements, and what their answers say. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "consume/plan.hpp"
#include "settle/database.hpp"

namespace settle::consume {

// Messages of one topic and type, by their place in the batch: one statement claims them all.
using claim_group = std::vector<std::size_t>;

// Of the messages at the places `wanted`, each in the order of its key: two nodes with the same messages must
// not deadlock. As a rule they come in that order, and are of one kind.
std::vector<claim_group> claim_groups_of(batch messages, std::span<const std::string_view> keys,
                                         std::vector<std::size_t> wanted);

// Writes down which messages of a group run, and which are duplicates. If a batch holds two messages of one
// deduplication key, the first of them has the claim. False: some claims are new, and the answer does not say
// which.
bool judge_claims(const claim_group& group, std::span<const std::string_view> keys, const result& claimed,
                  std::vector<verdict>& what);

}  // namespace settle::consume

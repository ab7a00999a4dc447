// What somebody who mistyped a name probably meant.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace settle::inline v0 {

// How many letters must be inserted, removed, replaced or swapped with their neighbour.
std::size_t edit_distance(std::string_view left, std::string_view right);

// The candidate with the smallest distance; the first of several. A name that is a candidate's last part
// ("batch_max" for "relay.batch_max") or its beginning ("relay.batch") means that candidate. Of a name that
// somebody has sent, only the first 64 bytes are compared.
std::string nearest_name(std::string_view mistyped, std::span<const std::string> candidates);

}  // namespace settle::inline v0

// A state machine as it is declared: whether it makes sense, who may move where, how it is drawn. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settle/guard.hpp"

namespace settle::guards {

inline constexpr std::size_t name_bytes_max = 100;

// Everything that is wrong with a declaration, a sentence each.
std::vector<std::string> problems_of(const guard_options& declared);

// From where this actor may move to `to`.
std::vector<std::string> sources_for(const guard_options& declared, std::string_view to,
                                     const move_options& asked);

// What becomes of a row in this state. `sources` are those of sources_for().
move_outcome judge(const guard_options& declared, const std::optional<std::string>& state,
                   std::string_view to, const std::vector<std::string>& sources);

std::string to_mermaid(const guard_options& declared);

}  // namespace settle::guards

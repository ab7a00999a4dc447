// Ids that follow from what something is about, so that whoever makes one again makes the same.
#pragma once

#include <initializer_list>
#include <string_view>

#include "settle/ids.hpp"

namespace settle::inline v0 {

// A UUID version 5 of these parts. They are prefixed with their lengths: ("ab", "c") and ("a", "bc") are
// different keys, which a joined text would confuse. So is the number of parts: natural keys have four, rows
// of adopted tables five, webhooks three.
event_id derived_id(std::initializer_list<std::string_view> parts);

}  // namespace settle::inline v0

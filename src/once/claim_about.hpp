// What operators are shown of a claim, as it is stored beside it.
#pragma once

#include <string>
#include <string_view>

#include "settle/claims.hpp"

namespace settle::keys {

// Throws payload_too_large or invalid_argument.
void check_about(const claim_about& what);

// A JSON object of what was given; empty if that was nothing.
std::string stored_about(const claim_about& what);

// Into the members of that name. What is no such object is shown as the label.
void read_about(std::string_view stored, unknown_claim& into);

}  // namespace settle::keys

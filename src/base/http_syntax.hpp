// Which bytes may stand where in a message of HTTP, for those who send answers and those who record them.
#pragma once

#include <string_view>

#include "settle/http.hpp"

namespace settle::inline v0::http {

bool is_token(std::string_view text);        // a method, a header's name; not empty
bool is_field_value(std::string_view text);  // no control character but tab

// Why an answer cannot be sent as it is: a header with a line break would be a second answer. Empty: it can.
std::string_view fault_of(const response& answer);

}  // namespace settle::inline v0::http

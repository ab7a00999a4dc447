// What other rooms need of HTTP: which bytes may stand where in a message, and times as headers write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "settle/environment.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {

bool is_token(std::string_view text);        // a method, a header's name; not empty
bool is_field_value(std::string_view text);  // no control character but tab

// Why an answer cannot be sent as it is: a header with a line break would be a second answer. Empty: it can.
std::string_view fault_of(const response& answer);

// "Sun, 06 Nov 1994 08:49:37 GMT", rounded down to the second.
std::string to_date(timestamp at);

// Reads exactly what to_date writes: IMF-fixdate. The two older forms are obsolete; nobody may send them.
std::optional<timestamp> from_date(std::string_view text);

// How long an answer asks to wait: the value of its Retry-After, in seconds or as a date. A date counts by
// the server's own clock if there is its Date: ours may be wrong. Nothing if it cannot be read; may be
// negative.
std::optional<duration> read_retry_after(std::string_view value, std::string_view date, timestamp now);

// Nothing if an escape is broken or stands for NUL.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space = false);
// As the value of a header: what is not visible ASCII, and '%', is escaped.
std::string percent_encoded(std::string_view text);

}  // namespace settle::inline v0::http

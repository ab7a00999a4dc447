// Dates, times of the day and intervals in PostgreSQL's binary format, as PostgreSQL itself writes them with
// DateStyle ISO and IntervalStyle postgres. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace settle::inline v0::postgres {

// Days since 2000-01-01; the ends of the range are its infinities.
std::string date_text(std::int32_t days);

// Microseconds since midnight.
std::string time_text(std::int64_t microseconds);

// The same, so many seconds west of Greenwich.
std::string timetz_text(std::int64_t microseconds, std::int32_t west_seconds);

std::string interval_text(std::int64_t microseconds, std::int32_t days, std::int32_t months);

}  // namespace settle::inline v0::postgres

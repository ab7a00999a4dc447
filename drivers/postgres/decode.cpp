#include "postgres/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <concepts>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "postgres/time_texts.hpp"
#include "postgres/types.hpp"
#include "settle/driver/database.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::postgres {
namespace {

template <std::unsigned_integral T>
T big_endian(std::string_view bytes) {
  if (bytes.size() < sizeof(T)) throw error(errc::store_unavailable, "a value from the server is too short");
  T made = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    made = static_cast<T>((made << 8) | static_cast<unsigned char>(bytes[i]));
  return made;
}

using decoder = value (*)(std::string_view);

value as_text(std::string_view bytes) { return bytes; }
value as_bytes(std::string_view bytes) { return blob{std::string(bytes)}; }
value as_null(std::string_view) { return nullptr; }
value as_bool(std::string_view bytes) { return big_endian<std::uint8_t>(bytes) != 0 ? 1 : 0; }
value as_int2(std::string_view bytes) { return static_cast<std::int16_t>(big_endian<std::uint16_t>(bytes)); }
value as_int4(std::string_view bytes) { return static_cast<std::int32_t>(big_endian<std::uint32_t>(bytes)); }
value as_int8(std::string_view bytes) { return static_cast<std::int64_t>(big_endian<std::uint64_t>(bytes)); }
value as_oid(std::string_view bytes) { return big_endian<std::uint32_t>(bytes); }
value as_float4(std::string_view bytes) {
  return static_cast<double>(std::bit_cast<float>(big_endian<std::uint32_t>(bytes)));
}
value as_float8(std::string_view bytes) { return std::bit_cast<double>(big_endian<std::uint64_t>(bytes)); }
value as_numeric(std::string_view bytes) { return decimal{numeric_text(bytes)}; }
value as_date(std::string_view bytes) {
  return date_text(static_cast<std::int32_t>(big_endian<std::uint32_t>(bytes)));
}
std::int64_t microseconds_in(std::string_view bytes) {
  return static_cast<std::int64_t>(big_endian<std::uint64_t>(bytes));
}
std::int32_t number_in(std::string_view bytes, std::size_t at) {
  return static_cast<std::int32_t>(big_endian<std::uint32_t>(bytes.substr(std::min(at, bytes.size()))));
}
value as_time_of_day(std::string_view bytes) { return time_text(microseconds_in(bytes)); }
value as_timetz(std::string_view bytes) { return timetz_text(microseconds_in(bytes), number_in(bytes, 8)); }
value as_interval(std::string_view bytes) {
  return interval_text(microseconds_in(bytes), number_in(bytes, 8), number_in(bytes, 12));
}
value as_jsonb(std::string_view bytes) {
  return bytes.substr(bytes.empty() ? 0 : 1);
}  // a version stands first

// PostgreSQL counts from 2000-01-01. Its infinities are the ends of the range and stay there.
value as_time(std::string_view bytes) {
  constexpr std::int64_t from_1970_to_2000 = 946'684'800'000'000;
  using limits = std::numeric_limits<std::int64_t>;
  const auto since_2000 = static_cast<std::int64_t>(big_endian<std::uint64_t>(bytes));
  if (since_2000 == limits::max() || since_2000 == limits::min()) return since_2000;
  return since_2000 + from_1970_to_2000;
}

value as_uuid(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text(36, '-');
  auto* next = text.data();
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) ++next;
    const auto byte = static_cast<unsigned char>(bytes.at(i));
    *next++ = digits[byte >> 4];
    *next++ = digits[byte & 15];
  }
  return text;
}

value as_lsn(std::string_view bytes) {
  const auto position = big_endian<std::uint64_t>(bytes);
  return fmt::format("{:X}/{:X}", position >> 32, position & 0xffffffff);
}

decoder decoder_for(Oid type) {
  switch (type) {
    case oid::boolean:
      return as_bool;
    case oid::int2:
      return as_int2;
    case oid::int4:
      return as_int4;
    case oid::int8:
    case oid::xid8:
      return as_int8;
    case oid::oid:
    case oid::xid:
    case oid::regproc:
    case oid::regclass:
      return as_oid;
    case oid::float4:
      return as_float4;
    case oid::float8:
      return as_float8;
    case oid::text:
    case oid::varchar:
    case oid::bpchar:
    case oid::char_:
    case oid::name:
    case oid::json:
    case oid::xml:
    case oid::unknown:
      return as_text;
    case oid::jsonb:
      return as_jsonb;
    case oid::bytea:
      return as_bytes;
    case oid::uuid:
      return as_uuid;
    case oid::timestamp:
    case oid::timestamptz:
      return as_time;
    case oid::numeric:
      return as_numeric;
    case oid::date:
      return as_date;
    case oid::time:
      return as_time_of_day;
    case oid::timetz:
      return as_timetz;
    case oid::interval:
      return as_interval;
    case oid::pg_lsn:
      return as_lsn;
    case oid::void_:
      return as_null;
    default:
      return nullptr;
  }
}

}  // namespace

std::string numeric_text(std::string_view binary) {
  const auto digits = static_cast<std::int16_t>(big_endian<std::uint16_t>(binary));
  const auto weight = static_cast<std::int16_t>(big_endian<std::uint16_t>(binary.substr(2)));
  const auto sign = big_endian<std::uint16_t>(binary.substr(4));
  const auto scale = big_endian<std::uint16_t>(binary.substr(6));
  if (sign == 0xc000) return "NaN";
  if (sign == 0xd000) return "Infinity";
  if (sign == 0xf000) return "-Infinity";
  const auto digit = [&](int i) -> int {  // four decimal digits each; what is not stored is zero
    if (i < 0 || i >= digits) return 0;
    return big_endian<std::uint16_t>(binary.substr(8 + 2 * static_cast<std::size_t>(i)));
  };
  std::string text = sign == 0x4000 ? "-" : "";
  text += std::to_string(digit(weight < 0 ? -1 : 0));
  for (int i = 1; i <= weight; ++i) text += fmt::format("{:04}", digit(i));
  if (scale == 0) return text;
  text += '.';
  std::string fraction;
  for (int i = weight + 1; fraction.size() < scale; ++i) fraction += fmt::format("{:04}", digit(i));
  return text + fraction.substr(0, scale);
}

std::int64_t changed_rows(const PGresult* answer) {
  const std::string_view tag = PQcmdStatus(const_cast<PGresult*>(answer));
  const bool changes = tag.starts_with("INSERT") || tag.starts_with("UPDATE") || tag.starts_with("DELETE") ||
                       tag.starts_with("MERGE");
  if (!changes) return 0;
  const std::string_view count = PQcmdTuples(const_cast<PGresult*>(answer));
  std::int64_t rows = 0;
  std::from_chars(count.data(), count.data() + count.size(), rows);
  return rows;
}

namespace {

// What somebody meets who selects his own columns.
struct unreadable_type {
  Oid type;
  std::string_view name;
};
constexpr unreadable_type unreadable[] = {
    {199, "json[]"},       {600, "point"},      {650, "cidr"},
    {790, "money"},        {829, "macaddr"},    {869, "inet"},
    {1000, "boolean[]"},   {1001, "bytea[]"},   {1005, "smallint[]"},
    {1007, "integer[]"},   {1009, "text[]"},    {1015, "varchar[]"},
    {1016, "bigint[]"},    {1021, "real[]"},    {1022, "double precision[]"},
    {1115, "timestamp[]"}, {1182, "date[]"},    {1185, "timestamptz[]"},
    {1231, "numeric[]"},   {1560, "bit"},       {1562, "varbit"},
    {2249, "record"},      {2951, "uuid[]"},    {3614, "tsvector"},
    {3807, "jsonb[]"},     {3904, "int4range"}, {3906, "numrange"},
    {3908, "tsrange"},     {3910, "tstzrange"}, {3912, "daterange"},
    {3926, "int8range"},
};
constexpr Oid first_own_type = 16'384;  // below it are PostgreSQL's

[[noreturn]] void refuse_type(const PGresult* answer, int column) {
  const auto type = PQftype(answer, column);
  const std::string_view name = PQfname(answer, column);
  const auto* const known = std::ranges::find(unreadable, type, &unreadable_type::type);
  std::string what = fmt::format("of a type with the oid {}", type);
  if (known != std::end(unreadable))
    what = known->name;
  else if (type >= first_own_type)
    what = fmt::format("of a type of your own (an enum perhaps; oid {})", type);
  const bool is_array = what.ends_with("[]");
  throw error(errc::statement_failed,
              fmt::format("column '{}' is {}, which has no value here: select it as cast({} as text){}", name,
                          what, name, is_array ? fmt::format(" or to_json({})", name) : ""));
}

// Null for a type that cannot be read.
std::vector<decoder> decoders_for(const PGresult* answer) {
  std::vector<decoder> decoders;
  for (int c = 0; c < PQnfields(answer); ++c) decoders.push_back(decoder_for(PQftype(answer, c)));
  return decoders;
}

void check_readable(const PGresult* answer, std::span<const decoder> decoders) {
  for (std::size_t c = 0; c < decoders.size(); ++c)
    if (decoders[c] == nullptr) refuse_type(answer, static_cast<int>(c));
}

value read_cell(const PGresult* answer, int row, int column, decoder decode) {
  if (decode == nullptr) refuse_type(answer, column);
  if (PQgetisnull(answer, row, column) != 0) return {};
  return decode(std::string_view(PQgetvalue(answer, row, column),
                                 static_cast<std::size_t>(PQgetlength(answer, row, column))));
}

class answered_rows final : public undecoded_rows {
 public:
  explicit answered_rows(result_handle answer)
      : answer_(std::move(answer)), decoders_(decoders_for(answer_.get())) {}

  std::size_t size() const override { return static_cast<std::size_t>(PQntuples(answer_.get())); }
  value cell(std::size_t row, std::size_t column) const override {
    return read_cell(answer_.get(), static_cast<int>(row), static_cast<int>(column), decoders_[column]);
  }

 private:
  result_handle answer_;
  std::vector<decoder> decoders_;
};

}  // namespace

result read_result(const PGresult* answer) {
  const auto decoders = decoders_for(answer);
  check_readable(answer, decoders);
  const int columns = PQnfields(answer), rows = PQntuples(answer);
  std::vector<value> cells;
  cells.reserve(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows));
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      cells.push_back(read_cell(answer, r, c, decoders[static_cast<std::size_t>(c)]));
  return {std::move(cells), static_cast<std::size_t>(columns), changed_rows(answer)};
}

result keep_result(result_handle answer) {
  const auto columns = static_cast<std::size_t>(PQnfields(answer.get()));
  const auto changed = changed_rows(answer.get());
  return {std::make_shared<answered_rows>(std::move(answer)), columns, changed};
}

}  // namespace settle::inline v0::postgres

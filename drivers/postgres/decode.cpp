#include "postgres/decode.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <concepts>
#include <limits>

#include "postgres/types.hpp"
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
value as_numeric(std::string_view bytes) { return numeric_text(bytes); }
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

std::vector<decoder> decoders_for(const PGresult* answer) {
  std::vector<decoder> decoders;
  for (int c = 0; c < PQnfields(answer); ++c) {
    decoders.push_back(decoder_for(PQftype(answer, c)));
    if (decoders.back() == nullptr)
      throw error(errc::statement_failed,
                  fmt::format("column '{}' has a type (oid {}) that has no value here: select it as ::text",
                              PQfname(answer, c), PQftype(answer, c)));
  }
  return decoders;
}

value read_cell(const PGresult* answer, int row, int column, decoder decode) {
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

#include "base/packed.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace settle::inline v0 {
namespace {

constexpr std::size_t uuid_bytes = 16;
constexpr std::size_t uuid_characters = 36;
using uuid_array = std::array<unsigned char, uuid_bytes>;

// Where in a uuid's text each of its bytes begins.
constexpr std::array<std::size_t, uuid_bytes> text_offsets{0,  2,  4,  6,  9,  11, 14, 16,
                                                           19, 21, 24, 26, 28, 30, 32, 34};
constexpr std::array<std::size_t, 4> dashes{8, 13, 18, 23};
constexpr char hex[] = "0123456789abcdef";
constexpr unsigned char no_digit = 0xff;

// Small letters only: what is packed has to come back as it was.
constexpr auto digits = [] {
  std::array<unsigned char, 256> value{};
  value.fill(no_digit);
  for (unsigned char i = 0; i < 16; ++i) value.at(static_cast<unsigned char>(hex[i])) = i;
  return value;
}();

bool read_uuid(std::string_view text, uuid_array& into) {
  if (text.size() != uuid_characters) return false;
  const auto* const at = reinterpret_cast<const unsigned char*>(text.data());
  unsigned char seen = 0;
  for (std::size_t i = 0; i < uuid_bytes; ++i) {
    const auto high = digits[at[text_offsets[i]]];
    const auto low = digits[at[text_offsets[i] + 1]];
    seen |= high | low;
    into[i] = static_cast<unsigned char>(high << 4U | low);
  }
  return seen < 16 && std::ranges::all_of(dashes, [&](std::size_t i) { return text[i] == '-'; });
}

std::size_t common(std::string_view a, std::string_view b) {
  const auto end = std::min(a.size(), b.size());
  std::size_t n = 0;
  while (n < end && a[n] == b[n]) ++n;
  return n;
}

std::string_view view(const uuid_array& of) { return {reinterpret_cast<const char*>(of.data()), of.size()}; }

}  // namespace

void pack_number(std::string& to, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7U) to += static_cast<char>(number | 0x80U);
  to += static_cast<char>(number);
}

void pack_text(std::string& to, std::string_view text) {
  pack_number(to, text.size());
  to += text;
}

void unpacker::fail() {
  broken_ = true;
  rest_ = {};
}

std::uint64_t unpacker::number() {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    number |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return number;
  }
  fail();
  return 0;
}

std::string_view unpacker::bytes(std::uint64_t count) {
  if (count > rest_.size()) {
    fail();
    return {};
  }
  const auto taken = rest_.substr(0, static_cast<std::size_t>(count));
  rest_.remove_prefix(taken.size());
  return taken;
}

std::string_view unpacker::text() { return bytes(number()); }

std::string pack_keys(std::span<const std::string_view> keys) {
  std::vector<uuid_array> uuids;
  std::vector<std::string_view> texts;
  uuids.reserve(keys.size());
  std::size_t shared = uuid_bytes;
  for (const auto key : keys) {
    uuid_array made;
    if (!read_uuid(key, made)) {
      texts.push_back(key);
      continue;
    }
    uuids.push_back(made);
    shared = std::min(shared, common(view(uuids.front()), view(made)));
  }
  std::string packed;
  packed.reserve(2 * uuid_bytes + uuids.size() * (uuid_bytes - shared));
  pack_number(packed, uuids.size());
  if (!uuids.empty()) pack_text(packed, view(uuids.front()).substr(0, shared));
  for (const auto& one : uuids) packed += view(one).substr(shared);
  for (const auto one : texts) pack_text(packed, one);
  return packed;
}

packed_keys::packed_keys(std::string_view packed) : from_(packed) {
  if (from_.at_end()) return;
  uuids_left_ = from_.number();
  if (uuids_left_ == 0) return;
  const auto first = from_.text();
  if (first.size() > uuid_bytes) from_.fail();
  if (first.size() == uuid_bytes && uuids_left_ > packed_same_keys_max) from_.fail();
  if (from_.is_broken()) return;
  shared_ = first.size();
  std::memcpy(uuid_, first.data(), shared_);
  for (const auto at : dashes) text_[at] = '-';
}

bool packed_keys::next() {
  if (from_.is_broken() || (uuids_left_ == 0 && from_.at_end())) return false;
  if (uuids_left_ == 0) {
    key_ = from_.text();
    return !from_.is_broken();
  }
  --uuids_left_;
  const auto rest = from_.bytes(uuid_bytes - shared_);
  if (from_.is_broken()) return false;
  std::memcpy(uuid_ + shared_, rest.data(), rest.size());
  for (std::size_t i = 0; i < uuid_bytes; ++i) {
    text_[text_offsets[i]] = hex[uuid_[i] >> 4U];
    text_[text_offsets[i] + 1] = hex[uuid_[i] & 15U];
  }
  key_ = {text_, uuid_characters};
  return true;
}

namespace {

// Nearly all positions are numbers. What is none comes as text behind a number that no position has.
constexpr std::uint64_t no_number = 1ULL << 63U;

void pack_position(std::string& to, std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8U | static_cast<unsigned char>(byte);
  if (bytes.size() == sizeof number && number < no_number) {
    pack_number(to, number);
  } else {
    pack_number(to, no_number);
    pack_text(to, bytes);
  }
}

}  // namespace

std::string pack_places(std::span<const log_places> logs) {
  std::string packed;
  for (const auto& log : logs) {
    pack_text(packed, log.log);
    pack_position(packed, log.position);
    pack_number(packed, log.sources.size());
    for (const auto& [source, highest] : log.sources) {
      pack_text(packed, source);
      auto shared = highest.empty() ? std::string_view() : highest.front().second;
      for (const auto& [lane, place] : highest) shared = shared.substr(0, common(shared, place));
      pack_text(packed, shared);
      pack_number(packed, highest.size());
      packed.reserve(packed.size() + highest.size() * 8);
      for (const auto& [lane, place] : highest) {
        packed += static_cast<char>(lane);
        pack_text(packed, place.substr(shared.size()));
      }
    }
  }
  return packed;
}

void packed_places::read_position() {
  auto number = from_.number();
  if (number == no_number) {
    position_ = from_.text();
    return;
  }
  for (std::size_t i = sizeof number; i-- > 0; number >>= 8U)
    position_number_[i] = static_cast<char>(number & 0xffU);
  position_ = {position_number_, sizeof number};
}

bool packed_places::next() {
  while (lanes_left_ == 0) {
    if (from_.is_broken() || (sources_left_ == 0 && from_.at_end())) return false;
    if (sources_left_ == 0) {
      log_ = from_.text();
      read_position();
      sources_left_ = from_.number();
    } else {
      --sources_left_;
      source_ = from_.text();
      shared_ = from_.text();
      lanes_left_ = from_.number();
    }
  }
  --lanes_left_;
  const auto lane = from_.bytes(1);
  const auto rest = from_.text();
  if (from_.is_broken()) return false;
  lane_ = static_cast<unsigned char>(lane.front());
  place_.assign(shared_).append(rest);
  return true;
}

}  // namespace settle::inline v0

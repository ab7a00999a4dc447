// Identifiers. Each kind is a type of its own, so that an event id cannot be passed for another id.
//
// New ids are UUID version 7: time-ordered, so that they append to an index instead of scattering over
// it, and monotone within one id_source.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "settle/environment.hpp"

#pragma GCC visibility push(default)
namespace settle::inline v0 {

class uuid {
 public:
  using bytes_type = std::array<std::uint8_t, 16>;

  constexpr uuid() = default;
  constexpr explicit uuid(const bytes_type& bytes) : bytes_(bytes) {}

  // Accepts the 36-character text form in either case; nothing else.
  static std::optional<uuid> parse(std::string_view text);

  std::string text() const;
  constexpr const bytes_type& bytes() const { return bytes_; }
  constexpr bool is_nil() const { return bytes_ == bytes_type{}; }

  friend constexpr auto operator<=>(const uuid&, const uuid&) = default;

 private:
  bytes_type bytes_{};
};

// A uuid that is the id of one kind of thing. `Kind` is only a name.
template <class Kind>
class id {
 public:
  constexpr id() = default;
  constexpr explicit id(uuid value) : value_(value) {}

  static std::optional<id> parse(std::string_view text) {
    const auto value = uuid::parse(text);
    return value ? std::optional(id(*value)) : std::nullopt;
  }

  std::string text() const { return value_.text(); }
  constexpr const uuid& value() const { return value_; }
  constexpr bool is_nil() const { return value_.is_nil(); }

  friend constexpr auto operator<=>(const id&, const id&) = default;

 private:
  uuid value_;
};

using event_id = id<struct event_kind>;    // one published event; the consumers' deduplication key
using member_id = id<struct member_kind>;  // one running relay or consumer, new at every start

// Makes UUIDv7 values from an injected clock and an injected random source. Thread-safe.
// A clock that stands still or jumps back does not break monotony: the last time is kept and counted up.
class id_source {
 public:
  id_source(time_source& time, random_source& random) : time_(time), random_(random) {}

  uuid next();

  template <class Id>
  Id next_as() {
    return Id(next());
  }

 private:
  std::mutex mutex_;
  time_source& time_;
  random_source& random_;
  std::uint64_t last_ms_ = 0;
  std::uint16_t counter_ = 0;
};

}  // namespace settle

#pragma GCC visibility pop

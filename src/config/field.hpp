// Where the value of a setting is kept, so that one piece of code reads and writes them all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

#include "settle/environment.hpp"

namespace settle::config {

// A count or a number of bytes is an int64, whatever it is kept as.
using setting_value = std::variant<std::string, std::int64_t, duration, log_level, bool>;

template <class Settings>
struct field_of {
  setting_value (*read)(const Settings&) = nullptr;
  void (*write)(Settings&, const setting_value&) = nullptr;
};

namespace detail {

template <class>
struct owner;
template <class Settings, class Kept>
struct owner<Kept Settings::*> {
  using type = Settings;
};

template <class Kept>
inline constexpr bool is_number = std::is_integral_v<Kept> && !std::is_same_v<Kept, bool>;

}  // namespace detail

template <auto First, auto... Rest>
constexpr auto& reach(auto& from) {
  if constexpr (sizeof...(Rest) == 0)
    return from.*First;
  else
    return reach<Rest...>(from.*First);
}

// field<&configuration::relay, &relay_options::batch_max>: relay.batch_max of a configuration.
template <auto First, auto... Rest>
constexpr auto field() {
  using settings = typename detail::owner<decltype(First)>::type;
  return field_of<settings>{[](const settings& from) -> setting_value {
                              const auto& kept = reach<First, Rest...>(from);
                              if constexpr (detail::is_number<std::remove_cvref_t<decltype(kept)>>)
                                return static_cast<std::int64_t>(kept);
                              else
                                return kept;
                            },
                            [](settings& to, const setting_value& value) {
                              auto& kept = reach<First, Rest...>(to);
                              using type = std::remove_cvref_t<decltype(kept)>;
                              if constexpr (detail::is_number<type>)
                                kept = static_cast<type>(std::get<std::int64_t>(value));
                              else
                                kept = std::get<type>(value);
                            }};
}

// A choice, kept as an enumeration whose values have these words, in their order from 0 on.
template <const auto& Words, auto First, auto... Rest>
constexpr auto choice_field() {
  using settings = typename detail::owner<decltype(First)>::type;
  return field_of<settings>{
      [](const settings& from) -> setting_value {
        return std::string(Words[static_cast<std::size_t>(reach<First, Rest...>(from))]);
      },
      [](settings& to, const setting_value& value) {
        auto& kept = reach<First, Rest...>(to);
        const auto at = std::ranges::find(Words, std::get<std::string>(value)) - Words.begin();
        kept = static_cast<std::remove_cvref_t<decltype(kept)>>(at);
      }};
}

}  // namespace settle::config

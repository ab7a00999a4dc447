// The sagas that isolation specs run.
#pragma once

#include <string>

#include "settle/codec.hpp"
#include "settle/saga.hpp"
#include "support/saga_world.hpp"

namespace settle::isolation {

struct arrival {
  std::string trip;
};

}  // namespace settle::isolation

template <>
struct settle::codec<settle::isolation::arrival> {
  static constexpr std::string_view topic = "arrivals";
  static constexpr std::string_view type = "arrival";
  static std::string key(const isolation::arrival& a) { return a.trip; }
  static std::string encode(const isolation::arrival& a) { return a.trip; }
  static isolation::arrival decode(std::string_view bytes) { return {std::string(bytes)}; }
};

namespace settle::isolation {

extern const saga_type<test::trip> waiting_trip;   // label; the event within five days, or not
extern const saga_type<test::trip> branched_trip;  // one branch waits, the other one sleeps twice
extern const saga_type<test::trip> seated_trip;    // a step that fails in the database, and then a wait
extern const saga_type<test::trip> plain_trip;     // three local steps
extern const saga_type<test::trip> charged_trip;   // a call between two local steps

inline void add_types(saga_host& to) {
  to.add(waiting_trip).add(branched_trip).add(seated_trip).add(plain_trip).add(charged_trip);
  to.on<arrival>([](const arrival& a) { return a.trip; });
}

}  // namespace settle::isolation

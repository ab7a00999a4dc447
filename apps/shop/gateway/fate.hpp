// What a stand-in of a payment gateway does with a charge. Pure: the same seed and charge give the same fate,
// whichever process asks and how often.
#pragma once

#include <cstdint>
#include <string_view>

#include "config.hpp"

namespace shop {

struct fate {
  bool declined = false;
  bool silent = false;  // authorised, and its webhook never comes
  bool late = false;
  int copies = 1;       // of the webhook
  bool forged = false;  // somebody else sends one that is signed with another secret
  friend bool operator==(const fate&, const fate&) = default;
};

// A payment method decides alone: "card:declined", "card:silent", "card:late", "card:duplicated",
// "card:forged", "card:good". Any other: the moods do.
fate fate_of(const gateway_moods& moods, std::string_view method, std::string_view charge);

// What becomes of one call; not of the charge: the next attempt may have more luck.
struct call_fate {
  bool fails = false;         // 500, and nothing was done
  bool loses_answer = false;  // done, and the answer is 500 all the same
};
call_fate call_fate_of(const gateway_moods& moods, std::uint64_t draw);

}  // namespace shop

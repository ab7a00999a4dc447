#include <algorithm>

#include "settle/driver/broker_inspection.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {

broker_place::broker_place(std::string_view bytes) : size_(bytes.size()) {
  if (bytes.size() > bytes_max)
    throw error(errc::invalid_argument, "a place in a broker's topic has at most 16 bytes");
  std::ranges::copy(bytes, bytes_.begin());
}

}  // namespace settle::inline v0

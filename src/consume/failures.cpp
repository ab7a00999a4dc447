#include "consume/failures.hpp"

#include <string>

#include "base/text.hpp"
#include "consume/seams.hpp"

namespace settle::consume {
namespace {

constexpr std::size_t error_bytes_max = 4000;

}  // namespace

// A rule of the user's that throws has said nothing.
std::optional<failure_class> failures::own_class(const std::exception& thrown, const message& m) {
  if (!options_.classify) return std::nullopt;
  std::string why = "something that is not a std::exception";
  try {
    return options_.classify(thrown, m);
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
  }
  report_.classify_failed(m, why);
  return std::nullopt;
}

failed_attempt failures::describe(const std::exception& thrown, const message& m) {
  auto why = own_class(thrown, m);
  if (!why) why = class_of(thrown);
  return {env_.now(), counted_as(*why), storable_text(thrown.what(), error_bytes_max)};
}

void failures::failed_alone(work& one, const failed_attempt& how) {
  if (one.charge) throw error(errc::store_unavailable, "a failure cannot be written down: " + how.error);
  if (pauses_.begin_with(one, how)) return;
  one.charge = how;
  report_.failed(one, how);
}

}  // namespace settle::consume

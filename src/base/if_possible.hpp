// What may be left undone when there is no memory for it: a line of the log, a count.
//
//   if_possible([&] { env.log->write(log_level::warning, "leave_failed", {{"error", e.what()}}); });
//
// For places from which nothing may be thrown: functions that are noexcept, destructors, the functions of
// threads, and the catch blocks in them. A log does not throw, but the texts that it is given need memory.
#pragma once

namespace settle::inline v0 {

template <class Deed>
void if_possible(const Deed& deed) noexcept {
  try {
    deed();
  } catch (...) {  // nobody could be told
  }
}

}  // namespace settle::inline v0

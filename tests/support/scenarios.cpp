#include "support/scenarios.hpp"

#include "support/order_world.hpp"

namespace settle::test {

testing::exploration explore_order_pipeline(
    const temp_dir& dir, scenario_broker& on,
    const std::function<void(const std::string& where, const verify_report&)>& judged) {
  const auto place_and_drain = [](order_world& world) {
    for (int i = 0; i < 3; ++i) world.place(i);
    world.drain();
    world.place(3);  // for a relay that has its lease and waits
    world.drain();
  };
  return testing::explore({
      .prepare =
          [&] {
            dir.clear();
            on.reset();
          },
      .run =
          [&](fault_points& faults) {
            order_world world(dir, on.with({.faults = &faults}));
            place_and_drain(world);
          },
      .recover =
          [&] {
            order_world world(dir, on.with({.hours_later = 1}));
            place_and_drain(world);
          },
      .check =
          [&](const std::string& where) {
            order_world world(dir, on.with({.hours_later = 2}));
            judged(where, world.verify());
          },
  });
}

}  // namespace settle::test

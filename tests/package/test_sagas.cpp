// Somebody's test of their own saga, with the kit of the installed package and no test framework.
#include <cstdio>
#include <exception>
#include <settle/saga_testing.hpp>
#include <string>
#include <vector>

namespace {

const auto reserve = settle::local("reserve", [](settle::transaction&, const std::string&) {
                     }).undo([](settle::transaction&, const std::string&) {});
const auto charge = settle::remote("charge", [](settle::call& call, const std::string&) {
                      return call.key();
                    }).undo([](settle::call&, const std::string&, const std::optional<std::string>&) {});
const auto place_order = settle::saga_of<std::string>("place_order", 1, reserve, charge);

settle::flow<> body(settle::saga& saga, const std::string& id) {
  co_await saga.run(reserve, id);
  co_await saga.sleep(std::chrono::hours(1));
}
const settle::saga_type resting("resting", 1, body, {reserve});

bool keeps_its_promises() {
  settle::testing::saga_world world;
  world.add(place_order).add(resting);
  const auto ordered = world.start(place_order, "o-1", std::string("o-1"));
  const auto rests = world.start(resting, "r-1", std::string("r-1"));
  world.advance(std::chrono::hours(1));
  world.fail("charge", settle::testing::step_fault::refused);
  const auto undone = world.start(place_order, "o-2", std::string("o-2"));
  const std::vector<std::string> done{"reserve", "charge"}, taken_back{"reserve", "undo reserve"};
  if (world.effects(ordered) != done || world.effects(undone) != taken_back) return false;
  return world.status(rests) == "COMPLETED" &&
         world.crash_everywhere(place_order, std::string("o-3")).runs > 0;
}

}  // namespace

int main() {
  try {
    return keeps_its_promises() ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "test_sagas: %s\n", e.what());
    return 1;
  }
}

// Expected: std::function<settle::v0::webhook::answer(const settle::v0::webhook::received&,
// settle::v0::transaction&)>
#include "settle/webhook.hpp"

void wrong(settle::webhook::worker& worker) {
  worker.on("stripe", "charge.succeeded",
            [](const settle::webhook::received&, settle::transaction&) {});  // here
}

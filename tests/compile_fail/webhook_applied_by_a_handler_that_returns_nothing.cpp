// Expected: a handler of webhooks takes (const settle::webhook::received&, settle::transaction&) and returns
// a settle::webhook::answer
#include "settle/webhook.hpp"

void wrong(settle::webhook::inbox& stripe, settle::database& db, const settle::webhook::request& asked) {
  stripe.apply(db, asked, [](const settle::webhook::received&, settle::transaction&) {});  // here
}

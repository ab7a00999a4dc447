// Keys that wait for an operator.
#include "consume/shared.hpp"
#include "queries/consume.hpp"
#include "settle/consume.hpp"

namespace settle::inline v0 {

void lock_blocked_key(transaction& tx, const blocked_key& which) {
  tx.execute(queries::consume::lock_blocked_key, {which.consumer, which.topic, which.key});
}

void release_blocked_key(transaction& tx, const blocked_key& which) {
  tx.execute(queries::consume::release_blocked_key, {which.consumer, which.topic, which.key, tx.env().now()});
  tx.execute(queries::consume::drop_parked_key, {which.consumer, which.topic, which.key, ""});
}

}  // namespace settle::inline v0

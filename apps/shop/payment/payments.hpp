// Payments: what is asked of the gateway, what it has told, and what was given back. Each function works in
// the caller's transaction and may be called again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "events.hpp"
#include "settle/quantity.hpp"

namespace shop {

extern const std::string_view payment_tables;

struct payment_view {
  std::string order_id, status, gateway_transaction_id;
  std::int64_t amount_cents = 0, captured_cents = 0, refunded_cents = 0;
};

// What a gateway tells in a webhook.
struct gateway_notice {
  std::string gateway_transaction_id, order_id, kind;  // "captured" or "failed"
  std::int64_t amount_cents = 0;
  std::string reason;
};

struct refund_result {
  enum { accepted, repeated, above_capture, unknown_payment } outcome = accepted;
  std::int64_t amount_cents = 0;
  std::int64_t refundable_cents = 0;  // that are left, if it was refused
};

// A call that the gateway has to be made, once: an intent that was committed before. The gateway refuses to
// repeat what has the same id.
struct gateway_call {
  std::string id, kind, order_id, method;
  std::int64_t amount_cents = 0;
  std::int64_t attempts = 0;
};

class payments {
 public:
  payments();

  void initiate(settle::transaction& tx, const order_pending_payment& what) const;
  void cancel(settle::transaction& tx, const order_cancelled& what) const;
  // False: it was noted before.
  bool note(settle::transaction& tx, const gateway_notice& what) const;
  // `amount_cents` 0: all that is left. Never above what was captured, whatever else is asked at the same
  // time.
  refund_result refund(settle::transaction& tx, const std::string& refund_request_id,
                       const std::string& order_id, std::int64_t amount_cents) const;
  // The gateway has confirmed a call.
  void done(settle::transaction& tx, const gateway_call& what) const;

  std::optional<payment_view> find(settle::transaction& tx, const std::string& order_id) const;

 private:
  settle::quantity refundable_;
};

}  // namespace shop

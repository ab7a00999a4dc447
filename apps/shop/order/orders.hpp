// Orders, and everything that has to change together with them: cart, sellable stock with its log, sales, and
// the events. Each function works in the caller's transaction and may be called again: it says or does the
// same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config.hpp"
#include "events.hpp"
#include "settle/guard.hpp"
#include "settle/quantity.hpp"

namespace shop {

struct placement {
  std::string user_id;
  std::string checkout_session_id;
  std::string idempotency_key;
  std::int64_t expected_total_cents = -1;  // -1: the buyer has not said what he has seen
  std::string payment_method = "card";
};

// Why an order was not placed; stable, for programs.
namespace refusals {
inline constexpr std::string_view cart_empty = "cart_empty", insufficient_stock = "insufficient_stock",
                                  price_changed = "price_changed",
                                  idempotency_conflict = "idempotency_conflict",
                                  session_unknown = "checkout_session_unknown";
}

struct placed {
  std::string order_id = {};  // empty: refused
  bool repeated = false;      // it was decided before, and this call has changed nothing
  std::string code = {};      // of the refusal
  std::string detail = {};
};

struct order_view {
  std::string id, user_id, checkout_session_id, status, cancel_reason;
  std::int64_t total_cents = 0, captured_cents = 0, refunded_cents = 0;
  std::vector<line> lines;
};

class orders {
 public:
  explicit orders(const config& of);

  // One order per checkout session, and one per (user, key). A refusal is decided once as well: commit it.
  placed place(settle::transaction& tx, const placement& what) const;

  std::optional<order_view> find(settle::transaction& tx, const std::string& id) const;

  // From the events of others.
  void initiated(settle::transaction& tx, const payment_initiated& what) const;
  void captured(settle::transaction& tx, const payment_captured& what) const;
  void failed(settle::transaction& tx, const payment_failed& what) const;
  void refunded(settle::transaction& tx, const payment_refunded& what) const;
  void confirmed(settle::transaction& tx, const stock_reserved& what) const;
  void rejected(settle::transaction& tx, const stock_rejected& what) const;
  void received(settle::transaction& tx, const stock_received& what) const;

  // Gives the stock back, tells everybody, and asks for the money to be returned.
  settle::move_result cancel(settle::transaction& tx, const std::string& id, const std::string& reason,
                             const std::string& actor) const;
  // The same for one whose payment has not come by now; nothing if it is paid or cancelled meanwhile.
  bool cancel_unpaid(settle::transaction& tx, const std::string& id) const;

  const settle::guard& machine() const { return machine_; }

 private:
  placed existing(settle::transaction& tx, const placement& what) const;
  placed refuse(settle::transaction& tx, const placement& what, std::string_view code,
                std::string detail) const;
  void fill(settle::transaction& tx, const placement& what, const std::string& id,
            const std::vector<line>& lines) const;
  void ask_for_refund(settle::transaction& tx, const std::string& id, const std::string& reason) const;

  settle::duration payment_window_;
  settle::guard machine_;
  settle::quantity stock_;
};

}  // namespace shop

#include "saga/orders.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "queries/saga.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::array<std::string_view, 4> order_names = {"retry", "skip", "mark-done", "abort"};
constexpr std::size_t text_bytes_max = 1000;

}  // namespace

std::string_view to_string(saga_order of) { return order_names.at(static_cast<std::size_t>(of)); }

bool order_saga(database& db, saga_id of, saga_order what, const saga_order_options& options) {
  check_name(options.who, {"name of the operator", text_bytes_max});
  check_name(options.reason, {"reason", text_bytes_max});
  auto tx = db.begin();
  const auto text = sagas::order_text({what, options.who, options.reason, options.result});
  const auto wanted = tx.execute(queries::saga::want, {of, text});
  if (wanted.affected() == 0) return false;
  tx.wake_on_commit();
  tx.commit("saga.order");
  return true;
}

}  // namespace settle::inline v0

namespace settle::sagas {

std::string order_text(const stored_order& of) {
  return to_json({{"order", std::string(to_string(of.what))},
                  {"who", of.who},
                  {"reason", of.reason},
                  {"result", of.result},
                  {"by", of.by_parent ? "parent" : "operator"}});
}

std::optional<stored_order> read_order(std::string_view text) try {
  const auto all = attributes_from_json(text);
  const auto member = [&](std::string_view name) {
    const auto found = all.find(name);
    return found == all.end() ? std::string() : found->second;
  };
  const auto found = std::ranges::find(order_names, member("order"));
  if (found == order_names.end()) return std::nullopt;
  return stored_order{static_cast<saga_order>(found - order_names.begin()), member("who"), member("reason"),
                      member("result"), member("by") == "parent"};
} catch (const error&) {
  return std::nullopt;
}

}  // namespace settle::sagas

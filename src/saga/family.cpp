// Sagas that start others, and wait for their ends. Only its owner writes a saga's journal, so a parent reads
// its children's rows. Whoever writes that a saga's status has changed wakes its parent in the same
// transaction: a parent that has looked too early looks again.
#include <algorithm>

#include "base/json.hpp"
#include "queries/saga.hpp"
#include "saga/engine.hpp"
#include "saga/orders.hpp"
#include "saga/store.hpp"

namespace settle::inline v0 {
namespace {

using sagas::row_kind;
using sagas::saga_status;

// Whether the end of the child of this row is waited for now.
bool is_waited_for(const sagas::instance& by, const sagas::journal_row& row) {
  if (row.kind != row_kind::child) return false;
  if (by.status == saga_status::running) return by.rows.answer_of(row.n) == nullptr;
  return by.status == saga_status::compensating && by.rows.about(row.n, row_kind::undo_intent) != nullptr &&
         by.rows.about(row.n, row_kind::undone) == nullptr;
}

void note_end(sagas::instance& of, int n, const sagas::child_saga& child) {
  const auto row = of.rows.at(n);
  sagas::journal_row noted{.kind = row_kind::outcome, .scope = row.scope, .name = row.name, .of = n};
  switch (child.status) {
    case saga_status::completed:
      noted.result = child.result;
      break;
    case saga_status::failed:
    case saga_status::compensated:
      noted.kind = row_kind::refused;
      noted.result = of.child_text(n) + " has failed: " + child.error;
      break;
    case saga_status::held:
      of.last_error = "it waits for " + of.child_text(n) + ", which is HELD: " + child.error;
      return;
    default:
      of.last_error.clear();
      return;
  }
  of.last_error.clear();
  of.note(std::move(noted));
}

}  // namespace

void saga_host::engine::read_children(transaction& tx, const round& of) const {
  json_array wanted;
  bool any = false;
  for (const auto& [no, one] : of.sagas) {
    one->children.clear();
    for (const auto& row : one->rows.rows()) {
      if (!is_waited_for(*one, row)) continue;
      wanted.add(json_array().add(no).add(row.n));
      any = true;
    }
  }
  if (!any) return;
  namespace columns = queries::saga::read_children_columns;
  const auto found = tx.execute(queries::saga::read_children, {wanted.text()});
  for (std::size_t i = 0; i < found.size(); ++i) {
    auto& parent = *of.sagas.at(found[i][columns::parent_no].integer());
    const auto n = static_cast<int>(found[i][columns::parent_n].integer());
    sagas::child_saga child{sagas::status_from(found[i][columns::status].text()),
                            !found[i][columns::wanted].is_null()};
    if (!found[i][columns::result].is_null()) child.result = found[i][columns::result].bytes();
    if (!found[i][columns::last_error].is_null()) child.error = found[i][columns::last_error].text();
    if (parent.status == saga_status::running) note_end(parent, n, child);
    parent.children[n] = std::move(child);
  }
}

saga_host::engine::family saga_host::engine::family_of(std::span<instance* const> ran,
                                                       const sagas::kin_work& kin) const {
  family found;
  for (const auto& one : kin.starts)
    found.starts.push_back({one.id, sagas::kind_number(options_.name, one.what->type, one.what->version),
                            sagas::shard_of(one.id), one.entity, blob{one.input}, env().now(), one.parent_no,
                            one.parent_n, sagas::origin_text(one.cause)});
  for (const auto& one : kin.undos) {
    found.undos.push_back(
        {one.id, sagas::order_text({.what = saga_order::abort, .reason = one.why, .by_parent = true})});
    found.others_by_id.push_back(one.id);
  }
  for (const auto* one : ran) {
    if (!one->row.parent_no || one->status == one->row.status) continue;
    const auto parent =
        std::ranges::find(ran, *one->row.parent_no, [](const auto* it) { return it->row.no; });
    if (parent != ran.end()) {
      (*parent)->wants_more = true;
      continue;
    }
    found.wakes.push_back({*one->row.parent_no});
    found.others.push_back(*one->row.parent_no);
  }
  return found;
}

// All rows that this transaction will write, in one order, so that two of them cannot wait for each other.
void saga_host::engine::lock_family(transaction& tx, std::span<instance* const> ran, const family& of) const {
  if (!of.starts.empty() || !of.undos.empty() || !of.wakes.empty()) tx.wake_on_commit();
  if (of.others.empty() && of.others_by_id.empty()) return;
  auto numbers = of.others;
  for (const auto* one : ran) numbers.push_back(one->row.no);
  json_array ids;
  for (const auto& one : of.others_by_id) ids.add(one.text());
  tx.execute(queries::saga::lock_sagas, {sagas::json_list(numbers), ids.text()});
}

}  // namespace settle::inline v0

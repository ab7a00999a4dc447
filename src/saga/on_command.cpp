#include "settle/on_command.hpp"

#include "settle/broker.hpp"
#include "settle/error.hpp"

namespace settle::inline v0 {

std::optional<saga_call> saga_call_of(const message& command) {
  const auto attribute = [&](std::string_view name) {
    const auto found = command.extensions.find(name);
    return found == command.extensions.end() ? std::string() : found->second;
  };
  const auto saga = attribute("settlesaga"), step = attribute("settlestep"), op = attribute("settleop");
  if (saga.empty() && step.empty() && op.empty()) return std::nullopt;
  const auto id = saga_id::parse(saga);
  if (!id || step.empty() || (op != "do" && op != "undo"))
    throw error(errc::invalid_argument, "message " + command.id +
                                            " does not say what it is for: settlesaga, settlestep and "
                                            "settleop (do or undo) go together");
  return saga_call{*id, step, op == "undo" ? saga_op::undo : saga_op::act};
}

}  // namespace settle::inline v0

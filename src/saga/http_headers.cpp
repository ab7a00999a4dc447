#include "saga/http_headers.hpp"

#include <charconv>

#include "http/shared.hpp"

namespace settle::inline v0 {
namespace {

constexpr const char *id_name = "Saga-Id", *step_name = "Saga-Step", *op_name = "Saga-Op",
                     *epoch_name = "Saga-Epoch";
constexpr std::string_view act_text = "do", undo_text = "undo";

// Twice is as bad as not at all: somebody else might read the other one.
std::optional<std::string_view> only(const http::header_list& headers, std::string_view name) {
  return headers.count(name) == 1 ? headers.find(name) : std::nullopt;
}

std::optional<saga_op> read_op(std::string_view text) {
  if (text == act_text) return saga_op::act;
  if (text == undo_text) return saga_op::undo;
  return std::nullopt;
}

std::optional<std::int64_t> read_epoch(std::string_view text) {
  std::int64_t epoch = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, epoch);
  if (failed != std::errc() || rest != end || epoch < 0) return std::nullopt;
  return epoch;
}

}  // namespace

std::optional<saga_call> saga_call::from(const http::request& asked) {
  const auto id = only(asked.headers, id_name), step = only(asked.headers, step_name),
             op = only(asked.headers, op_name), epoch = only(asked.headers, epoch_name);
  if (!id || !step || !op || !epoch) return std::nullopt;
  const auto saga = saga_id::parse(*id);
  auto name = http::percent_decoded(*step);
  const auto what = read_op(*op);
  const auto number = read_epoch(*epoch);
  if (!saga || !name || name->empty() || !what || !number) return std::nullopt;
  return saga_call{*saga, std::move(*name), *what, *number};
}

}  // namespace settle::inline v0

namespace settle::sagas {

void write_call(http::header_list& to, const saga_call& what) {
  to.set(id_name, what.saga.text());
  to.set(step_name, http::percent_encoded(what.step));
  to.set(op_name, what.op == saga_op::act ? act_text : undo_text);
  to.set(epoch_name, std::to_string(what.epoch));
}

}  // namespace settle::sagas

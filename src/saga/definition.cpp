#include <algorithm>
#include <set>
#include <utility>

#include "base/derived_id.hpp"
#include "base/text.hpp"
#include "settle/error.hpp"
#include "settle/saga_flow.hpp"

namespace settle::inline v0::detail {
namespace {

constexpr std::size_t name_bytes_max = 200;

void check_step(const saga_definition& of, const step_core& step) {
  const auto refuse = [&](const std::string& why) {
    throw error(errc::invalid_argument, "saga " + of.type + ", step " + step.name + ": " + why);
  };
  if (step.retry.attempts_max < 1 || step.retry.undo_attempts_max < 1 ||
      step.retry.wait <= duration::zero() || step.retry.wait_max < step.retry.wait)
    refuse("attempts and waits must be positive, and wait_max the larger");
  if (step.remote && !step.has_undo && step.on_unknown == unknown::unsaid)
    refuse(
        "a remote step without an undo says what follows if nobody knows whether it was done: on_unknown()");
  if (step.on_unknown == unknown::ask && !step.can_find)
    refuse("on_unknown(unknown::ask) needs the function that asks");
}

}  // namespace

void cannot_read_stored(std::string_view what) {
  throw error(errc::decode_failed, "what a saga has stored is no " + std::string(what));
}

void append_stored(std::string& to, std::string_view part) {
  to.append(number_text(part.size())).append(":").append(part);
}

std::string_view take_stored(std::string_view& from) {
  const auto colon = from.find(':');
  if (colon == std::string_view::npos) cannot_read_stored("list of arguments");
  const auto size = read_number<std::size_t>(from.substr(0, colon));
  from.remove_prefix(colon + 1);
  if (size > from.size()) cannot_read_stored("list of arguments");
  const auto part = from.substr(0, size);
  from.remove_prefix(size);
  return part;
}

void check_step_name(std::string_view name) {
  check_name(name, {"step name", name_bytes_max});
  if (name.find('/') != std::string_view::npos || name.find('#') != std::string_view::npos)
    throw error(errc::invalid_name, "step name " + std::string(name) + ": '/' and '#' are taken");
}

std::string child_input(std::string_view entity, std::string_view input) {
  std::string parts;
  append_stored(parts, entity);
  append_stored(parts, input);
  return parts;
}

uuid derived_saga_uuid(saga_id of, std::string_view scope, int number) {
  return derived_id({"saga", "new_id", of.text(), scope, std::to_string(number), ""}).value();
}

std::shared_ptr<const saga_definition> checked(saga_definition of) {
  check_name(of.type, {"saga type", name_bytes_max});
  if (of.version < 1) throw error(errc::invalid_argument, "saga " + of.type + ": versions count from 1");
  std::set<std::string_view> names;
  for (const auto& one : of.steps) {
    if (!names.insert(one->name).second)
      throw error(errc::invalid_argument, "saga " + of.type + " has two steps called " + one->name);
    check_step(of, *one);
  }
  return std::make_shared<const saga_definition>(std::move(of));
}

namespace {

class list_body final : public running_body {
 public:
  list_body(flow_scope& root, std::string_view input, const std::vector<step_pointer>& steps)
      : root_(root), input_(input), flow_(run(root_, input_, steps)) {}
  std::coroutine_handle<> frame() const override { return flow_.frame(); }
  std::string result() override {
    flow_.frame().promise().take();
    return {};
  }

 private:
  static flow<> run(flow_scope& root, const std::string& input, const std::vector<step_pointer>& steps) {
    for (const auto& step : steps) {
      question what{.step = step, .name = step->name, .input = input};
      awaited_answer<read_nothing> asked(root, std::move(what));
      co_await asked;
    }
  }

  flow_scope& root_;
  std::string input_;
  flow<> flow_;
};

}  // namespace

saga_definition list_of_steps(std::string_view type, int version, std::vector<step_pointer> steps) {
  saga_definition made{std::string(type), version, std::move(steps)};
  made.begin = [steps = made.steps](flow_scope& root, std::string_view input) {
    return std::make_unique<list_body>(root, input, steps);
  };
  return made;
}

}  // namespace settle::inline v0::detail

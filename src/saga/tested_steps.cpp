#include "saga/tested_steps.hpp"

#include <stdexcept>

#include "settle/error.hpp"
#include "settle/failure.hpp"

namespace settle::sagas {
namespace {

using testing::step_fault;

[[noreturn]] void fail(step_fault how, const std::string& what, bool remote) {
  switch (how) {
    case step_fault::refused:
      throw step_refused(what + " is refused, as the test says");
    case step_fault::unavailable:
      if (remote) throw call_not_made(what + " is not reached, as the test says");
      throw handler_failed(failure_class::outage, "what " + what + " needs is away, as the test says");
    default:
      throw std::runtime_error(what + " fails, as the test says");
  }
}

class tested_step final : public detail::step_core {
 public:
  tested_step(const detail::step_pointer& of, std::shared_ptr<step_book> book, fault_points& points)
      : step_core(*of), of_(of), book_(std::move(book)), points_(points) {}

  std::string perform(transaction* tx, call* via, std::string_view input) const override {
    const auto& step = real(false);
    return run(name, via, [&] { return step.perform(tx, via, input); });
  }

  void undo(transaction* tx, call* via, std::string_view input, const std::string* result) const override {
    const auto& step = real(true);
    run("the undo of " + name, via, [&] {
      step.undo(tx, via, input, result);
      return std::string();
    });
  }

  // Whoever is asked knows the truth.
  std::pair<finding, std::string> find(call& via, std::string_view input) const override {
    const auto& step = real(false);
    return (step.can_find ? step : *of_).find(via, input);
  }

 private:
  const step_core& real(bool undo) const {
    const auto found = book_->replaced.find(name);
    return found != book_->replaced.end() && (!undo || found->second->has_undo) ? *found->second : *of_;
  }

  template <class Work>
  std::string run(const std::string& what, const call* via, const Work& work) const {
    const bool is_undo = what != name;
    if (via == nullptr) {
      if (const auto fault = book_->take_fault(name, is_undo)) fail(*fault, what, false);
      return work();
    }
    points_.reached("saga.call.before");
    const auto fault = book_->take_fault(name, is_undo);
    if (fault && *fault != step_fault::lost_answer) fail(*fault, what, true);
    auto result = work();
    book_->calls.push_back({via->step(), via->key(), is_undo});
    if (fault) throw std::runtime_error("the answer of " + what + " is lost, as the test says");
    points_.reached("saga.call.after");
    return result;
  }

  detail::step_pointer of_;
  std::shared_ptr<step_book> book_;
  fault_points& points_;
};

// Between a body and the engine: the body asks for the program's own steps.
class step_swapper final : public detail::body_host {
 public:
  step_swapper(detail::body_host& engine, const std::map<std::string, detail::step_pointer>& steps)
      : engine_(engine), steps_(steps) {}

  bool ask(detail::flow_scope& in, detail::question& what) override {
    if (const auto found = steps_.find(what.name); what.step && found != steps_.end())
      what.step = found->second;
    return engine_.ask(in, what);
  }
  void wait(detail::flow_scope& in, detail::question& what, std::coroutine_handle<> who) override {
    engine_.wait(in, what, who);
  }
  void begin(std::coroutine_handle<> branch) override { engine_.begin(branch); }
  void resume(std::coroutine_handle<> parent) override { engine_.resume(parent); }
  detail::flow_scope& scope(std::string path) override {
    auto& found = engine_.scope(std::move(path));
    found.host = this;
    return found;
  }
  saga_id id() const override { return engine_.id(); }
  const std::string& entity() const override { return engine_.entity(); }

 private:
  detail::body_host& engine_;
  const std::map<std::string, detail::step_pointer>& steps_;
};

class tested_body final : public detail::running_body {
 public:
  tested_body(const detail::saga_definition& of, std::map<std::string, detail::step_pointer> steps,
              detail::flow_scope& root, std::string_view input)
      : steps_(std::move(steps)), swapper_(*root.host, steps_) {
    root.host = &swapper_;
    body_ = of.begin(root, input);
  }
  std::coroutine_handle<> frame() const override { return body_->frame(); }
  std::string result() override { return body_->result(); }

 private:
  std::map<std::string, detail::step_pointer> steps_;
  step_swapper swapper_;
  std::unique_ptr<detail::running_body> body_;
};

}  // namespace

std::optional<step_fault> step_book::take_fault(const std::string& step, bool undo) {
  const auto found = faults.find(std::pair(step, undo));
  if (found == faults.end()) return std::nullopt;
  const auto how = found->second.how;
  if (found->second.times > 0 && --found->second.times == 0) faults.erase(found);
  return how;
}

detail::saga_definition tested(const detail::saga_definition& of, std::shared_ptr<step_book> book,
                               fault_points& points) {
  detail::saga_definition made = of;
  std::map<std::string, detail::step_pointer> by_name;
  for (auto& one : made.steps) {
    one = std::make_shared<tested_step>(one, book, points);
    by_name[one->name] = one;
  }
  made.begin = [of, by_name](detail::flow_scope& root, std::string_view input) {
    return std::make_unique<tested_body>(of, by_name, root, input);
  };
  return made;
}

}  // namespace settle::sagas

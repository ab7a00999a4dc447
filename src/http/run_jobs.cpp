#include "http/run_jobs.hpp"

#include <string>
#include <utility>
#include <vector>

#include "base/if_possible.hpp"

namespace settle::inline v0::http {
namespace {

// False: nobody waits for it any more.
bool begin(job& what) noexcept {
  auto expected = job::phase::waiting;
  return what.at.compare_exchange_strong(expected, job::phase::running);
}

bool end(job& what) noexcept {
  auto expected = job::phase::running;
  return what.at.compare_exchange_strong(expected, job::phase::answered);
}

void end_or_say_dropped(job& what) noexcept {
  if (end(what)) return;
  if_possible([&] {
    what.from->env().log->write(
        log_level::warning, "http_answer_dropped",
        {{"route", what.to.path->pattern},
         {"status", std::to_string(what.answer.status)},
         {"advice", "the handler returned after its client had been told 503, or was gone"}});
  });
}

void run_alone(job& one) noexcept {
  if (!begin(one)) return;
  one.answer = answer_of(one.to.found->what, one.asked, one.from->env(), *one.to.path);
  end_or_say_dropped(one);
}

// Their handler is not even asked.
void refuse_all(const job_chain& all) noexcept {
  for (auto* one = all.first(); one != nullptr; one = one->next.get()) {
    if (!begin(*one)) continue;
    one->answer = bare_refusal();
    end(*one);
  }
}

void run_together(const job_chain& all) noexcept {
  std::vector<job*> begun;
  std::vector<const request*> asked;
  try {
    begun.reserve(all.size());
    asked.reserve(all.size());
  } catch (...) {
    return refuse_all(all);
  }
  for (auto* one = all.first(); one != nullptr; one = one->next.get()) {
    if (!begin(*one)) continue;
    begun.push_back(one);
    asked.push_back(&one->asked);
  }
  if (begun.empty()) return;
  const auto& to = begun.front()->to;
  auto answers = answers_of(*to.found->together, asked, begun.front()->from->env(), *to.path);
  for (std::size_t n = 0; n < begun.size(); ++n) {
    begun[n]->answer = n < answers.size() ? std::move(answers[n]) : bare_refusal();
    end_or_say_dropped(*begun[n]);
  }
}

}  // namespace

void run_jobs(const job_chain& all) noexcept {
  if (all.first()->to.found->together) return run_together(all);
  run_alone(*all.first());
}

}  // namespace settle::inline v0::http

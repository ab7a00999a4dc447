// The requests of one batch, each through the middleware of its route, then together to their handler.
//
// A middleware calls the handler behind it and waits for the answer. So the requests are opened one inside
// the other, on one thread: when the middleware of the first calls on, that of the second begins; when that
// of the last calls on, the handler is asked for all of them. Then each middleware gets the answer to its own
// request. One that answers by itself, or throws, keeps its request out of the batch and does nothing to the
// others.
#pragma once

#include <exception>
#include <span>
#include <vector>

#include "http/routes.hpp"

namespace settle::inline v0::http {

class batch_round {
 public:
  // All of them live until run() returns.
  batch_round(const batch& of, std::span<const request* const> asked, const environment& env,
              const path_routes& on);
  batch_round(const batch_round&) = delete;
  batch_round& operator=(const batch_round&) = delete;

  // One answer for each request. Once.
  std::vector<response> run() noexcept;

  // What stands behind the middleware of a batched route: in a round on this thread the request joins it.
  // Otherwise, and if a middleware calls on a second time, it is answered alone.
  static response answer(const batch& of, const request& asked);

 private:
  void open(std::size_t from) noexcept;
  response join(const request& asked);
  void ask() noexcept;

  const batch& of_;
  std::span<const request* const> asked_;
  const environment& env_;
  const path_routes& on_;
  std::vector<response> answers_;
  std::vector<const request*> joined_;  // as their middleware has passed them on
  std::size_t opened_ = 0;              // the request whose middleware runs innermost
  std::size_t called_on_ = 0;           // one more than the last that has joined
  bool asked_handler_ = false;
  std::vector<response> handled_;  // of those that have joined
  std::exception_ptr failure_;     // or why there are none
};

}  // namespace settle::inline v0::http

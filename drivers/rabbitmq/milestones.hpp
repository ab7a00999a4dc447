// How one process learns that a group, whoever its members are, is done with all that its queues have now.
// The server does not tell how many messages are handed out and not acknowledged. So a message that is no
// event, a milestone, is put behind them into each queue. Whoever has the queue answers it once everything
// before it is acknowledged; if its session ends earlier, the milestone goes back with the rest, in its
// place.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rabbitmq/connection.hpp"
#include "settle/driver/broker.hpp"

namespace settle::inline v0::rabbitmq {

class milestones final : public backlog {
 public:
  // Puts one into each of these queues.
  milestones(const address& to, const options& with, const std::string& answers_to,
             const std::vector<std::string>& queues, const limit& within);

  bool is_done(const call_limits& limits) override;

 private:
  std::string answers_to_;  // a queue of ours, which goes with the connection
  std::unique_ptr<connection> on_;
  std::unique_ptr<channel> control_;
  std::set<std::string> missing_;  // queues that have not answered
};

// What a milestone says, and what the answer repeats.
std::string milestone_text(const std::string& answers_to, const std::string& queue);
// Everything before it is done: says so to whoever has put it there.
void answer_milestone(channel& on, const std::string& text, const limit& within);

}  // namespace settle::inline v0::rabbitmq

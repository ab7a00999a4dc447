#include "rabbitmq/seams.hpp"

#include <numeric>

#include "base/zoo.hpp"

namespace settle::inline v0::rabbitmq {

void batch_was_sent(channel& on, confirms& counted) {
  if (!zoo::has(zoo::bug::sent_taken_for_confirmed)) return;
  on.flush();
  counted.take({counted.next_number() - 1, true, true});
}

bool trusts_what_it_finds() { return zoo::has(zoo::bug::exchange_taken_for_whole); }

bool is_of(const delivery_tag& tag, std::uint32_t session) {
  return tag.session == session || zoo::has(zoo::bug::tag_of_an_old_channel);
}

bool put_back_alone(channel& on, unacknowledged& open) {
  if (!zoo::has(zoo::bug::requeue_overtakes)) return false;
  std::vector<std::uint64_t> all(1000);
  std::iota(all.begin(), all.end(), std::uint64_t{1});
  for (const auto& words : open.done(std::move(all)))
    on.send(AMQP_BASIC_NACK_METHOD, amqp_basic_nack_t{words.tag, words.and_all_before ? 1 : 0, 1});
  on.flush();
  return true;
}

}  // namespace settle::inline v0::rabbitmq

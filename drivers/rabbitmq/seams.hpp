// Places where the bug zoo (base/zoo.hpp) breaks what it must not: in the real library each of them does the
// right thing and nothing else.
#pragma once

#include "rabbitmq/confirms.hpp"
#include "rabbitmq/connection.hpp"
#include "rabbitmq/unacknowledged.hpp"
#include "settle/driver/broker.hpp"

namespace settle::inline v0::rabbitmq {

// All of a batch is on its way; its confirmations are still to come.
void batch_was_sent(channel& on, confirms& counted);

// True if messages go straight to a topic's exchange, whoever has made it and whatever is bound to it. False:
// they go by our own entrance, and what was behind it is checked.
bool trusts_what_it_finds();

// Tags are numbers of a channel: those of an earlier one mean other messages.
bool is_of(const delivery_tag& tag, std::uint32_t session);

// True if what the member holds went back message by message. False: it is to go back with its channel.
bool put_back_alone(channel& on, unacknowledged& open);

}  // namespace settle::inline v0::rabbitmq

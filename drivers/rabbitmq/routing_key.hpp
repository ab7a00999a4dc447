// The routing key of a message to an exchange that others have made, by a template. Pure.
#pragma once

#include <string>
#include <string_view>

#include "settle/broker.hpp"

namespace settle::inline v0::rabbitmq {

// With {topic}, {type}, {key}, {subject} and {lane} in place of what the message has.
std::string routing_key_of(const message& m, std::string_view by);

// Why it is no template for routing keys; empty: it is one.
std::string unusable_routing_key(std::string_view by);

}  // namespace settle::inline v0::rabbitmq

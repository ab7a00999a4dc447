// The broker of a storm: a file of its folder, or the server of --broker.
#pragma once

#include <memory>

#include "compose/service_broker.hpp"
#include "workload.hpp"

namespace storm {

// How it is opened. Leases and heartbeats are short, so that take-overs happen while you watch.
settle::compose::broker_options storm_broker_options(const settings& of);
std::unique_ptr<settle::broker> open_storm_broker(const settings& of);

// On a server: the group of the consumers anew, without what an earlier storm may have left. It has to be
// there before the first order is published.
void prepare_group(settle::broker& at, const std::string& url);
// And it goes again. The exchange of the topic stays.
void remove_group(settle::broker& at, const std::string& url);

}  // namespace storm

// What /metrics reads from the stores at each scrape.
#pragma once

#include <map>
#include <string>

#include "settle/database.hpp"
#include "settle/driver/broker_inspection.hpp"

namespace settle::daemon {

// Most topics, and most pairs of group and topic, that one scrape shows.
constexpr std::size_t series_max = 1000;

using gauge_values = std::map<std::string, double>;

void read_service_gauges(database& service, gauge_values& into);
void read_broker_gauges(broker_inspection& broker, gauge_values& into);

}  // namespace settle::daemon

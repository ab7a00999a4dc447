// Databases and brokers by what the configuration calls them.
#pragma once

#include <memory>
#include <string>

#include "settle/broker.hpp"
#include "settle/database.hpp"

namespace shop {

// A file, a postgresql:// URL, or a libpq conninfo (with a '='). Throws settle::error.
std::unique_ptr<settle::database> open_database(const std::string& where,
                                                const settle::environment& env = {});

// A file (embedded), amqp(s)://… or kafka(s)://….
std::unique_ptr<settle::broker> open_broker(const std::string& where, const settle::environment& env = {});

}  // namespace shop

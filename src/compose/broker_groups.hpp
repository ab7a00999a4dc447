// Consumer groups as an operator handles them, on the file that open_broker_file() gives.
#pragma once

#include "sqlite/groups.hpp"

namespace settle::compose {

using sqlite::group_change;
using sqlite::group_choice;
using sqlite::group_extent;
using sqlite::read_groups;
using sqlite::remove_group;
using sqlite::reset_group;

}  // namespace settle::compose

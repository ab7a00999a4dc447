// Copies of the embedded files: see sqlite/backup.hpp for what each function promises.
#pragma once

#include "sqlite/backup.hpp"

namespace settle::compose {

using sqlite::copy_online;
using sqlite::prepare_restored_broker;
using sqlite::prepare_restored_service;
using sqlite::put_in_place;

}  // namespace settle::compose

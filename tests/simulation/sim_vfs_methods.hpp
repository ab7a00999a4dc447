// SQLite's table of functions for one simulated process.
#pragma once

#include <sqlite3.h>

namespace settle::sim {

class process;

void fill_vfs(sqlite3_vfs& table, process& owner);

}  // namespace settle::sim

// Opens the driver that the component promises. Nothing is written before the first transaction.
#include <settle/database.hpp>
#include <settle/sqlite.hpp>

int main() { return settle::sqlite::open("used_driver.db")->speaks() == settle::dialect::sqlite ? 0 : 1; }

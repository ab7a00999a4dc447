// Opens the driver that the component promises. Nothing connects before the first transaction.
#include <settle/database.hpp>
#include <settle/postgres.hpp>

int main() {
  const auto db = settle::postgres::open("host=nowhere.invalid dbname=orders");
  return db->speaks() == settle::dialect::postgres ? 0 : 1;
}

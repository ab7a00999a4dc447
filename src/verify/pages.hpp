// Reading a table of any size: page by page within one snapshot. So no statement takes longer than a page
// does, and no result is larger.
#pragma once

#include <cstdint>
#include <utility>

#include "queries/verify.hpp"
#include "settle/database.hpp"

namespace settle {

constexpr std::int64_t rows_per_page = 20'000;

// What a query for pages takes: its own parameters, then the place to go on from, then how many rows.
struct page_query {
  const query& text;
  parameters with;           // its own
  parameters from;           // before the first row
  std::size_t place_column;  // where a row says its place, in as many columns as `from` has
};

template <class Take>
void read_pages(database& db, page_query what, const Take& take) {
  auto tx = db.read();
  tx.execute(queries::verify::plan_for_pages);
  while (true) {
    statement page{what.text, what.with};
    page.values.insert(page.values.end(), what.from.begin(), what.from.end());
    page.values.emplace_back(rows_per_page);
    const auto rows = tx.execute(page);
    for (std::size_t i = 0; i < rows.size(); ++i) take(rows[i]);
    if (rows.size() < static_cast<std::size_t>(rows_per_page)) return;
    const auto last = rows[rows.size() - 1];
    for (std::size_t i = 0; i < what.from.size(); ++i) what.from[i] = last[what.place_column + i];
  }
}

}  // namespace settle

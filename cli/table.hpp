// Rows in aligned columns.
#pragma once

#include <string>
#include <vector>

namespace settle::cli {

enum class align { left, right };

// The first row is the header. Every line begins with `indent` spaces and ends with a line break.
std::string table(const std::vector<align>& columns, const std::vector<std::vector<std::string>>& rows,
                  std::size_t indent);

}  // namespace settle::cli

#include "queries/saga.hpp"
#include "saga/shared.hpp"

namespace settle::sagas {

std::vector<stranded_sagas> find_stranded(transaction& look) {
  namespace columns = queries::saga::find_stranded_columns;
  const auto found = look.execute(queries::saga::find_stranded, {look.env().now()});
  std::vector<stranded_sagas> all;
  for (std::size_t i = 0; i < found.size(); ++i)
    all.push_back({found[i][columns::host].text(), found[i][columns::type].text(),
                   found[i][columns::version].integer(), found[i][columns::waiting].integer(),
                   found[i][columns::since].time()});
  return all;
}

}  // namespace settle::sagas

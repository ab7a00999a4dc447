// Databases of a storm on a PostgreSQL. A build without that driver has without_postgres.cpp, which refuses.
#pragma once

#include <string>
#include <vector>

namespace storm {

class scratch_databases {
 public:
  // Creates one for each service, on the server that `server` names in libpq's keywords.
  scratch_databases(std::string server, const std::vector<std::string>& services);

  // In the order of the services.
  std::vector<std::string> conninfos() const;
  void drop() const;

 private:
  std::string server_;
  std::vector<std::string> names_;
};

}  // namespace storm

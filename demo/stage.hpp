// What the storm looks at while it runs, and asks the checker about at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "settle/broker.hpp"
#include "settle/database.hpp"
#include "settle/verify.hpp"
#include "workload.hpp"

namespace storm {

class stage {
 public:
  // Makes the tables.
  explicit stage(const settings& of);

  // Effects that are noted by now. Of a database that does not answer: as many as when it last did.
  void look();
  std::int64_t committed() const;
  std::int64_t applied() const { return warehouse_.noted; }

  settle::verify_report verify() const;
  // Messages that the broker holds more than once; nothing: it does not tell.
  std::optional<std::int64_t> extra_copies() const;
  // When everybody has ended.
  void clean_up();

  // Of every shop, in their order in the file; one without a name if the storm has no file.
  struct shop_count {
    std::string name;
    std::int64_t committed = 0;
  };
  std::vector<shop_count> shops() const;

 private:
  struct watched {
    std::string name;
    std::unique_ptr<settle::database> db;
    std::int64_t noted = 0;
  };

  std::vector<watched> shops_;
  watched warehouse_;
  std::unique_ptr<settle::broker> broker_;
  std::string broker_url_;
};

}  // namespace storm

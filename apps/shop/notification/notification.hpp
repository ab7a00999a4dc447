// The notification service: mails, into a mailbox that is a table.
#pragma once

#include <string_view>

#include "events.hpp"
#include "service.hpp"

namespace shop {

extern const std::string_view notification_tables;

class notification_service final : public service {
 public:
  explicit notification_service(const surroundings& with);
  void add_routes(settle::http::router& to) override;
  std::vector<settle::service*> loops() override { return {&listener_}; }
  const settle::consumer* listener() const override { return &listener_; }

  settle::consumer& events() { return listener_; }

 private:
  settle::database& db_;
  settle::consumer listener_;
};

}  // namespace shop

// A webhook as an event of the outbox.
#include "base/derived_id.hpp"
#include "settle/publish.hpp"
#include "settle/webhook.hpp"

namespace settle::inline v0::webhook {

event_id forwarded_id(std::string_view source, std::string_view webhook_id) {
  return derived_id({"settle.webhook", source, webhook_id});
}

handler forward_to(std::string topic) {
  return [topic = std::move(topic)](const received& what, transaction& tx) {
    const auto type = what.headers.find("content-type");
    const bool typed = type != what.headers.end() && !type->second.empty() &&
                       type->second.size() <= event_limits::name_bytes_max;
    publish(tx,
            event{.topic = topic,
                  .type = what.type.empty() ? "webhook" : what.type,
                  .key = what.key,
                  .payload = what.body,
                  .content_type = typed ? type->second : "application/json",
                  .headers = {{"webhooksource", what.source}, {"webhookid", what.id}}},
            {.id = forwarded_id(what.source, what.id), .payload_bytes_max = what.body.size()});
    return answer::done;
  };
}

}  // namespace settle::inline v0::webhook

#include "settle/publish.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "outbox/lanes.hpp"
#include "outbox/natural_key.hpp"
#include "outbox/shared.hpp"
#include "queries/outbox.hpp"
#include "settle/broker.hpp"
#include "settle/error.hpp"
#include "settle/metrics.hpp"
#include "wire/attribute_names.hpp"

namespace settle::inline v0 {
namespace {

constexpr std::size_t headers_parameter = 7;  // of insert_event

void check_header_name(std::string_view name) {
  check_name(name, {"header name", event_limits::name_bytes_max});
  if (!is_attribute_name(name))
    throw error(errc::invalid_name,
                fmt::format("the header '{}' is no CloudEvents attribute name: only a-z and 0-9", name));
}

void check_not_reserved(std::string_view name) {
  if (writer_of(name))
    throw error(errc::invalid_name, fmt::format("the header '{}' is set by Settle itself", name));
}

void check_names(const event& what) {
  constexpr auto name_max = event_limits::name_bytes_max;
  check_name(what.topic, {"topic", name_max});
  check_name(what.type, {"event type", name_max});
  check_name(what.key, {"key", event_limits::key_bytes_max, true});
  check_name(what.aggregate_type, {"aggregate type", name_max, true});
  check_name(what.content_type, {"content type", name_max});
  for (const auto& [name, content] : what.headers) {
    check_header_name(name);
    check_name(content, {"value of header '" + name + "'", event_limits::header_bytes_max, true});
  }
}

void check(const event& what, const publish_options& options) {
  check_names(what);
  if (what.headers.size() > event_limits::headers_max)
    throw error(errc::invalid_argument, fmt::format("the event has {} headers, {} are allowed",
                                                    what.headers.size(), event_limits::headers_max));
  for (const auto& [name, unused] : what.headers) check_not_reserved(name);
  if (what.payload.size() > options.payload_bytes_max)
    throw error(errc::payload_too_large,
                fmt::format("the payload of {} has {} bytes, payload_bytes_max is {}", what.type,
                            what.payload.size(), options.payload_bytes_max));
}

// The event's own headers and what it was caused by, as CloudEvents extensions.
attributes extensions_of(const event& what, const origin& cause) {
  attributes all = what.headers;
  const auto add = [&](const char* name, const std::string& content) {
    if (content.empty()) return;
    check_name(content, {name, event_limits::header_bytes_max});
    all[name] = content;
  };
  add("correlationid", cause.correlation_id);
  add("causationid", cause.causation_id);
  add("traceparent", cause.traceparent);
  add("tracestate", cause.tracestate);
  return all;
}

origin inherit(origin own, const origin& from) {
  if (own.correlation_id.empty()) own.correlation_id = from.correlation_id;
  if (own.causation_id.empty()) own.causation_id = from.causation_id;
  if (own.traceparent.empty()) {
    own.traceparent = from.traceparent;
    own.tracestate = from.tracestate;
  }
  return own;
}

// Sent with the insert, so it costs no round trip of its own.
void lock_key(transaction& tx, const event& what) {
  if (what.key.empty())
    throw error(errc::invalid_argument, "publish_order::strict needs a key: order is kept per key");
  tx.post(queries::outbox::lock_key, {what.key});
}

statement insert_statement(const event& what, const attributes& extensions, event_id id, timestamp created_at,
                           std::optional<timestamp> deliver_at) {
  const auto id_text = id.text();
  return {queries::outbox::insert_event,
          {outbox::lane_of(what.key, id_text), id_text, what.topic, what.type, what.aggregate_type, what.key,
           what.content_type, to_json(extensions), created_at, blob{what.payload}, value(deliver_at)}};
}

void insert(transaction& tx, const statement& event) {
  with_fault_points(tx.env(), "outbox.insert", [&] { tx.post(event); });
  tx.wake_on_commit();
}

// The other way round than relays make a subject. One that was made otherwise cannot be kept.
std::string aggregate_type_of(const message& m) {
  const auto end = "/" + m.key;
  if (m.key.empty() || !m.subject.ends_with(end)) return {};
  return m.subject.substr(0, m.subject.size() - end.size());
}

}  // namespace

statement publish_statement(const event& what, const publish_options& options, event_id id,
                            timestamp created_at) {
  check(what, options);
  return insert_statement(what, extensions_of(what, options.cause), id, created_at, options.deliver_at);
}

event_id publish(transaction& tx, const event& what, const publish_options& options) {
  auto complete = options;
  complete.cause = inherit(options.cause, tx.cause());
  const auto id = options.id ? *options.id : tx.env().ids->next_as<event_id>();
  const auto row = publish_statement(what, complete, id, tx.env().now());
  if (options.order == publish_order::strict) lock_key(tx, what);
  insert(tx, row);
  return id;
}

publish_once_result publish_once(transaction& tx, const event& what, const publish_options& options) {
  if (what.key.empty()) throw error(errc::invalid_name, "publish_once needs a key: the aggregate's id");
  if (options.id) throw error(errc::invalid_argument, "publish_once derives the event's id from its parts");
  auto complete = options;
  complete.id = outbox::natural_id(what);
  complete.cause = inherit(options.cause, tx.cause());
  auto row = publish_statement(what, complete, *complete.id, tx.env().now());  // checks everything first
  if (options.order == publish_order::strict) lock_key(tx, what);
  const auto claimed = with_fault_points(tx.env(), "outbox.natural_key", [&] {
    return tx.execute(queries::outbox::claim_natural_key, {*complete.id, tx.env().now()}).affected();
  });
  if (claimed == 0) {
    tx.env().counters->add("settle_publish_skipped_total", {{"topic", what.topic}});
    tx.env().log->write(
        log_level::info, "publish_skipped",
        {{"topic", what.topic}, {"type", what.type}, {"key", what.key}, {"id", complete.id->text()}});
    return {*complete.id, true};
  }
  auto extensions = extensions_of(what, complete.cause);
  extensions["naturalkey"] = what.key + "-" + what.type;
  row.values[headers_parameter] = to_json(extensions);
  insert(tx, row);
  return {*complete.id, false};
}

event_id republish(transaction& tx, const message& what) {
  const event as_event{
      .topic = what.topic,
      .type = what.type,
      .key = what.key,
      .aggregate_type = aggregate_type_of(what),
      .payload = what.payload,
      .content_type = what.content_type.empty() ? "application/octet-stream" : what.content_type,
      .headers = what.extensions};
  check_names(as_event);
  const auto own = event_id::parse(what.id);
  const auto id = own ? *own : tx.env().ids->next_as<event_id>();
  insert(tx, insert_statement(as_event, as_event.headers, id, tx.env().now(), std::nullopt));
  return id;
}

}  // namespace settle::inline v0

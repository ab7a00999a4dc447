// settle publish: commits one event to the outbox.
#include "settle/publish.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/failure.hpp"
#include "cli/files.hpp"
#include "cli/help.hpp"
#include "cli/message_text.hpp"
#include "cli/payload.hpp"
#include "cli/syntax.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

struct publish_arguments {
  event what;
  std::string payload_file;
  std::vector<std::string> headers;
  std::string id;
};

std::string payload_of(const publish_arguments& given) {
  return given.payload_file.empty() ? payload_from(given.what.payload) : read_payload(given.payload_file);
}

// Whoever reads it believes its content type. No content at all is no lie.
void check_content(const event& what) {
  if (what.payload.empty() || !names_json(what.content_type)) return;
  if (is_utf8(what.payload) && is_json(what.payload)) return;
  throw failure(
      errc::invalid_argument,
      fmt::format("the payload is no JSON, and its content type is {}: mend it, or name what it is with "
                  "--content-type, such as text/plain",
                  what.content_type));
}

attributes parse_headers(const std::vector<std::string>& given) {
  attributes headers;
  for (const auto& one : given) {
    const auto equals = one.find('=');
    if (equals == std::string::npos)
      throw failure(errc::invalid_argument, fmt::format("--header takes NAME=VALUE, not '{}'", one));
    const auto name = one.substr(0, equals);
    if (!headers.emplace(name, one.substr(equals + 1)).second)
      throw failure(errc::invalid_argument, fmt::format("the header '{}' is given twice", name));
  }
  return headers;
}

event_id choose_id(const std::string& given, const environment& env) {
  if (given.empty()) return env.ids->next_as<event_id>();
  const auto parsed = event_id::parse(given);
  if (!parsed)
    throw failure(
        errc::invalid_argument,
        fmt::format("--id takes a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057, not '{}'", given));
  return *parsed;
}

int publish_one(context& shared, publish_arguments arguments) {
  auto& what = arguments.what;
  what.headers = parse_headers(arguments.headers);
  what.payload = payload_of(arguments);
  check_content(what);
  const auto id = choose_id(arguments.id, environment{});
  const auto db = open_for_publishing(shared.service_path());
  try {
    auto tx = db->begin();
    publish(tx, what, {.id = id});
    tx.commit();
  } catch (const error& e) {
    if (!e.outcome_unknown()) throw;
    throw error::with_unknown_outcome(
        e.code(),
        fmt::format("publish again with --id {}, and consumers will apply it once: {}", id.text(), e.what()));
  }
  shared.note_done(fmt::format("the event {} was committed", id.text()));
  if (shared.json)
    fmt::print("{}\n",
               boost::json::serialize(boost::json::object{
                   {"id", id.text()}, {"topic", what.topic}, {"type", what.type}, {"key", what.key}}));
  else
    fmt::print("{}\n", id.text());
  return exit_ok;
}

void add_payload_options(command_syntax command, publish_arguments& arguments) {
  const auto text =
      command
          .add_option(
              "--payload", arguments.what.payload,
              "The content, JSON unless --content-type says otherwise. @FILE reads it from a file, @-\n"
              "from standard input; one that begins with @ is written @@… Default: empty")
          .option_text("TEXT");
  command
      .add_option(
          "--payload-file", arguments.payload_file,
          "Read the content from a file, any bytes; - is standard input.\nAt most 1,048,576 bytes (1 MiB)")
      .option_text("FILE")
      .excludes(text);
  command
      .add_option("--content-type", arguments.what.content_type,
                  "Media type of the content. Default: application/json")
      .option_text("TYPE");
}

}  // namespace

void add_publish(command_syntax to, context& shared) {
  const auto command = to.add_subcommand("publish",
                                         "Commit one event to the outbox and print its id.\n"
                                         "A relay brings it to the broker: see `settle relay`.");
  const auto arguments = std::make_shared<publish_arguments>();
  auto& what = arguments->what;
  command.add_option("TOPIC", what.topic, "Where it goes, e.g. orders; 1 to 255 bytes")
      .required()
      .option_text(" ");
  command.add_option("TYPE", what.type, "What happened, e.g. order.placed; 1 to 255 bytes")
      .required()
      .option_text(" ");
  command
      .add_option("--key", what.key,
                  "Events of one key keep their order; at most 1,024 bytes.\nDefault: none, no order")
      .option_text("KEY");
  command
      .add_option("--aggregate-type", what.aggregate_type,
                  "What the key identifies, e.g. order. Default: none")
      .option_text("TYPE");
  add_payload_options(command, *arguments);
  command
      .add_option("--header", arguments->headers, "An extra attribute, name in a-z and 0-9; may be repeated")
      .option_text("NAME=VALUE")
      .one_value_each();
  command
      .add_option("--id", arguments->id,
                  "The event's id, to repeat a publish whose outcome is unknown.\nDefault: a new UUIDv7")
      .option_text("UUID");
  describe_command(
      command,
      "  settle publish orders order.placed --key 42 --payload '{\"order_id\":\"42\"}'\n"
      "  settle publish scans page.scanned --content-type image/png --payload-file - < page.png");
  command.callback([&shared, arguments] {
    shared.run = [&shared, arguments] { return publish_one(shared, *arguments); };
  });
}

}  // namespace settle::cli

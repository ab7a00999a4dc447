#include <algorithm>
#include <array>

#include "config/option.hpp"

namespace settle::config {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr bounds bytes_of_path_or_none{0, 4000};
constexpr std::array<std::string_view, 3> schemes{"stripe", "standard", "hmac"};
constexpr std::array<std::string_view, 2> encodings{"hex", "base64"};
constexpr std::array<std::string_view, 3> of_hmac_alone{"header", "encoding", "prefix"};

using settings = webhook_settings;

constexpr field_of<settings> scheme_word{
    [](const settings& from) -> setting_value { return std::string(word_of(from.source.signature.how)); },
    [](settings& to, const setting_value& value) {
      to.source.signature.how = scheme_of(std::get<std::string>(value));
    }};

constexpr field_of<settings> encoding_word{
    [](const settings& from) -> setting_value {
      const bool is_hex = from.source.signature.encoding == webhook::signature_encoding::hex;
      return std::string(is_hex ? encodings[0] : encodings[1]);
    },
    [](settings& to, const setting_value& value) {
      to.source.signature.encoding = std::get<std::string>(value) == encodings[0]
                                         ? webhook::signature_encoding::hex
                                         : webhook::signature_encoding::base64;
    }};

template <auto Place>
constexpr field_of<settings> place_text{
    [](const settings& from) -> setting_value { return text_of(from.source.*Place); },
    [](settings& to, const setting_value& value) {
      to.source.*Place = read_place(std::get<std::string>(value)).value_or(webhook::place{});
    }};

constexpr std::array table{
    webhook_option{
        .name = "scheme",
        .type = kind::choice,
        .where = scheme_word,
        .meaning = "How the provider signs: as Stripe, after Standard Webhooks (HMAC or ed25519), or with an "
                   "HMAC-SHA256 of the body alone in a header.",
        .words = schemes},
    webhook_option{"keys_env", kind::text, field<&settings::keys_env>(), bytes_of_name, "",
                   "Name of the environment variable that holds the keys, one per line. Keys stand in no "
                   "configuration; this or keys_file, or both while keys are changed, is required."},
    webhook_option{"keys_file", kind::text, field<&settings::keys_file>(), bytes_of_path_or_none, "",
                   "File that holds the keys, one per line, without the blanks around them; read at the "
                   "start. For stripe and hmac the "
                   "secret as it is, for standard whsec_… or whpk_…. At most 16 keys altogether; any of them "
                   "may fit."},
    webhook_option{"topic", kind::text, field<&settings::topic>(), bytes_of_topic, "",
                   "Topic of the events that webhooks become."},
    webhook_option{"event_id", kind::place, place_text<&webhook::source::event_id>, bytes_of_name, "",
                   "Where the id is that stays the same over all deliveries of one event."},
    webhook_option{"type", kind::place, place_text<&webhook::source::type>, bytes_of_name, "",
                   "Where the type is; it becomes the type of the event. Not there: `webhook`."},
    webhook_option{"key", kind::place, place_text<&webhook::source::key>, bytes_of_name, "",
                   "Where it says what the event is about; it becomes the key of the event. Not there: "
                   "each is by itself."},
    webhook_option{"time", kind::place, place_text<&webhook::source::time>, bytes_of_name, "",
                   "Where the provider's time of the event is: seconds or milliseconds since 1970, or RFC "
                   "3339. It tells stale events, and copies that come after sweep.webhook_keep."},
    webhook_option{.name = "ignore_stale",
                   .type = kind::flag,
                   .where = field<&settings::source, &webhook::source::ignore_stale>(),
                   .meaning =
                       "Whether an event is ignored if a later one of its key was forwarded before. For "
                       "providers whose events carry the whole state."},
    webhook_option{.name = "trust_unsigned_headers",
                   .type = kind::flag,
                   .where = field<&settings::source, &webhook::source::trust_unsigned_headers>(),
                   .meaning = "Whether id, type, key and time may be in a header that is not signed. Whoever "
                              "has seen one webhook can send it again with another id then."},
    webhook_option{"tolerance",
                   kind::time,
                   field<&settings::source, &webhook::source::signature, &webhook::signing::tolerance>(),
                   {duration(seconds(1)).count(), duration(hours(24)).count()},
                   "",
                   "How far the signed time may be from ours, either way. Not for hmac, which signs none."},
    webhook_option{"header", kind::text,
                   field<&settings::source, &webhook::source::signature, &webhook::signing::header>(),
                   bytes_of_topic, "", "Header of the signature. For hmac only."},
    webhook_option{.name = "encoding",
                   .type = kind::choice,
                   .where = encoding_word,
                   .meaning = "How the signature is written. For hmac only.",
                   .words = encodings},
    webhook_option{"prefix", kind::text,
                   field<&settings::source, &webhook::source::signature, &webhook::signing::prefix>(),
                   bytes_of_name, "", "What stands before the signature. For hmac only."},
    webhook_option{"body_bytes_max",
                   kind::bytes,
                   field<&settings::source, &webhook::source::body_bytes_max>(),
                   {1, 16 * mib},
                   "",
                   "Largest body. More is answered with 413."},
};

}  // namespace

std::span<const webhook_option> webhook_options() { return table; }

bool is_for(const webhook_option& what, std::string_view scheme) {
  if (scheme == "hmac") return what.name != "tolerance";
  return std::ranges::find(of_hmac_alone, what.name) == of_hmac_alone.end();
}

}  // namespace settle::config

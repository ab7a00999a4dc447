#include <array>
#include <boost/json.hpp>

#include "base/text.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {
namespace {

struct reason {
  int status;
  std::string_view text;
};

constexpr std::array reasons{
    reason{200, "OK"},
    reason{201, "Created"},
    reason{202, "Accepted"},
    reason{204, "No Content"},
    reason{206, "Partial Content"},
    reason{301, "Moved Permanently"},
    reason{302, "Found"},
    reason{303, "See Other"},
    reason{304, "Not Modified"},
    reason{307, "Temporary Redirect"},
    reason{308, "Permanent Redirect"},
    reason{400, "Bad Request"},
    reason{401, "Unauthorized"},
    reason{402, "Payment Required"},
    reason{403, "Forbidden"},
    reason{404, "Not Found"},
    reason{405, "Method Not Allowed"},
    reason{406, "Not Acceptable"},
    reason{408, "Request Timeout"},
    reason{409, "Conflict"},
    reason{410, "Gone"},
    reason{411, "Length Required"},
    reason{412, "Precondition Failed"},
    reason{413, "Content Too Large"},
    reason{414, "URI Too Long"},
    reason{415, "Unsupported Media Type"},
    reason{417, "Expectation Failed"},
    reason{422, "Unprocessable Content"},
    reason{423, "Locked"},
    reason{425, "Too Early"},
    reason{428, "Precondition Required"},
    reason{429, "Too Many Requests"},
    reason{431, "Request Header Fields Too Large"},
    reason{500, "Internal Server Error"},
    reason{501, "Not Implemented"},
    reason{502, "Bad Gateway"},
    reason{503, "Service Unavailable"},
    reason{504, "Gateway Timeout"},
    reason{505, "HTTP Version Not Supported"},
    reason{507, "Insufficient Storage"},
};

constexpr std::size_t detail_bytes_max = 2000;

}  // namespace

std::string_view reason_of(int status) {
  const auto* const found = std::ranges::find(reasons, status, &reason::status);
  return found == reasons.end() ? std::string_view() : found->text;
}

response text(int status, std::string_view content_type, std::string body) {
  return {status, {{"Content-Type", content_type}}, std::move(body)};
}

response problem(int status, std::string_view code, std::string_view detail, std::string_view instance) {
  const auto readable = storable_text(detail, detail_bytes_max);
  boost::json::object about{{"type", "about:blank"},
                            {"title", reason_of(status)},
                            {"status", status},
                            {"detail", readable},
                            {"code", code}};
  if (!instance.empty()) about["instance"] = storable_text(instance, detail_bytes_max);
  return text(status, "application/problem+json", boost::json::serialize(about) + "\n");
}

}  // namespace settle::inline v0::http

#include "http/lookup.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <optional>
#include <system_error>

namespace settle::inline v0::http {
namespace {

constexpr std::size_t at_once_max = 64;  // each is a thread, also after its request has given up

struct free_addresses {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

lookup_result look_up(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  lookup_result made;
  if (const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list)) {
    made.why = ::gai_strerror(failed);
    return made;
  }
  const std::unique_ptr<addrinfo, free_addresses> found(list);
  for (const auto* one = list; one != nullptr; one = one->ai_next) {
    auto& address = made.addresses.emplace_back();
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.bytes = one->ai_addrlen;
  }
  return made;
}

}  // namespace

std::string endpoint_address::text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v6 = storage.ss_family == AF_INET6;
  const auto& four = reinterpret_cast<const sockaddr_in&>(storage);
  const auto& six = reinterpret_cast<const sockaddr_in6&>(storage);
  const void* address = v6 ? static_cast<const void*>(&six.sin6_addr) : &four.sin_addr;
  ::inet_ntop(storage.ss_family, address, text.data(), text.size());
  return v6 ? fmt::format("[{}]:{}", text.data(), ntohs(six.sin6_port))
            : fmt::format("{}:{}", text.data(), ntohs(four.sin_port));
}

struct lookup::question {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::optional<lookup_result> answer;
};

lookup_result lookup::find(const std::string& host, std::uint16_t port, const std::stop_token& stop,
                           steady::time_point until) {
  // Numbers need nobody else.
  if (auto found = look_up(host, port, AI_NUMERICHOST); !found.addresses.empty()) return found;
  const auto what = std::make_shared<question>();
  if (const auto why = ask(what, host, port); !why.empty()) return {.why = why};
  std::unique_lock lock(what->mutex);
  const bool answered = what->changed.wait_until(lock, stop, until, [&] { return what->answer.has_value(); });
  if (answered) return *what->answer;
  lookup_result none;
  none.how = stop.stop_requested() ? waited::stopped : waited::late;
  return none;
}

std::string lookup::ask(const std::shared_ptr<question>& what, const std::string& host, std::uint16_t port) {
  const std::scoped_lock lock(mutex_);
  forget_answered();
  if (asked_.size() >= at_once_max) return "too many names are being looked up";
  try {
    asked_.push_back({what, std::jthread([what, host, port] {
                        auto found = look_up(host, port, 0);
                        const std::scoped_lock lock(what->mutex);
                        what->answer = std::move(found);
                        what->changed.notify_all();
                      })});
  } catch (const std::system_error& e) {
    return std::string("no thread to look up a name: ") + e.what();
  }
  return {};
}

void lookup::forget_answered() {
  std::erase_if(asked_, [](const asked& one) {
    const std::scoped_lock lock(one.what->mutex);
    return one.what->answer.has_value();
  });
}

}  // namespace settle::inline v0::http

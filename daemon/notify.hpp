// Tells systemd how far we are, by its datagram protocol (sd_notify(3)).
#pragma once

#include <string_view>

namespace settle::daemon {

// "READY=1", "STOPPING=1". Does nothing without $NOTIFY_SOCKET; a failure changes nothing for us.
void notify_supervisor(std::string_view state) noexcept;

}  // namespace settle::daemon

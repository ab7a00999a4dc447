// What a call of a saga says about itself in the headers of a request.
#pragma once

#include "settle/http.hpp"
#include "settle/participate.hpp"

namespace settle::sagas {

void write_call(http::header_list& to, const saga_call& what);

}  // namespace settle::sagas

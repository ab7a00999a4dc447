// The numbers of PostgreSQL's built-in types, fixed in its catalogue.
#pragma once

#include "postgres/handle.hpp"

namespace settle::inline v0::postgres::oid {

inline constexpr Oid boolean = 16, bytea = 17, char_ = 18, name = 19, int8 = 20, int2 = 21, int4 = 23,
                     regproc = 24, text = 25, oid = 26, xid = 28, json = 114, xml = 142, float4 = 700,
                     float8 = 701, unknown = 705, date = 1082, time = 1083, bpchar = 1042, varchar = 1043,
                     timestamp = 1114, timestamptz = 1184, interval = 1186, timetz = 1266, numeric = 1700,
                     regclass = 2205, void_ = 2278, uuid = 2950, pg_lsn = 3220, jsonb = 3802, xid8 = 5069;

}  // namespace settle::inline v0::postgres::oid

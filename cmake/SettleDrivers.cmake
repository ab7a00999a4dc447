# The drivers. Each is a folder of drivers/, an object library that alone knows its client library, and a component of the
# installed package. All but SQLite, the embedded default, can be left out: -DSETTLE_POSTGRES=OFF, -DSETTLE_REDIS=OFF,
# -DSETTLE_RABBITMQ=OFF, -DSETTLE_KAFKA=OFF.
#
# A new one needs its folder, an option and its lines here, and src/compose/NAME.cpp with src/compose/without_NAME.cpp,
# which says to whoever asks for it that this build does not have it.
option(SETTLE_POSTGRES "The PostgreSQL driver; needs libpq" ON)
option(SETTLE_REDIS "The Redis driver; needs hiredis" ON)
option(SETTLE_RABBITMQ "The RabbitMQ driver; needs librabbitmq" ON)
option(SETTLE_KAFKA "The Kafka driver; needs librdkafka" ON)

set(SETTLE_DRIVERS "")           # of this build
set(SETTLE_DRIVERS_LEFT_OUT "")
set(SETTLE_CLIENTS "")           # what the drivers of this build link
set(SETTLE_FIND_CLIENTS "")      # a line each: how users of the archive find them
set(SETTLE_CLIENT_FLAGS "")      # likewise, for pkg-config

# settle_driver(<name> CLIENT <targets or libraries> [FIND <arguments of find_dependency>] [FLAGS <linker flags>])
macro(settle_driver name)
  cmake_parse_arguments(of "" "FLAGS" "CLIENT;FIND" ${ARGN})
  list(APPEND SETTLE_DRIVERS ${name})
  list(APPEND SETTLE_CLIENTS ${of_CLIENT})
  set(settle_client_of_${name} ${of_CLIENT})
  if(of_FIND)
    list(JOIN of_FIND " " of_find)
    string(APPEND SETTLE_FIND_CLIENTS "    find_dependency(${of_find})\n")
  endif()
  string(APPEND SETTLE_CLIENT_FLAGS " ${of_FLAGS}")
endmacro()

# Stops with what to do about it.
function(settle_missing_client driver client)
  string(TOUPPER ${driver} option)
  message(FATAL_ERROR "${client} was not found, which the driver for ${driver} needs: install its development package, or "
                      "leave the driver out with -DSETTLE_${option}=OFF")
endfunction()

find_package(SQLite3 3.40 REQUIRED)
settle_driver(sqlite CLIENT SQLite::SQLite3 FIND SQLite3 3.40)  # its flags come from sqlite3.pc

if(SETTLE_POSTGRES)
  find_package(PostgreSQL 14)
  if(NOT PostgreSQL_FOUND)
    settle_missing_client(postgres "libpq 14 or newer")
  endif()
  settle_driver(postgres CLIENT PostgreSQL::PostgreSQL FIND PostgreSQL 14 FLAGS -lpq)
else()
  list(APPEND SETTLE_DRIVERS_LEFT_OUT postgres)
endif()

if(SETTLE_REDIS)
  find_library(SETTLE_HIREDIS hiredis)
  if(NOT SETTLE_HIREDIS)
    settle_missing_client(redis "hiredis")
  endif()
  settle_driver(redis CLIENT hiredis FLAGS -lhiredis)
else()
  list(APPEND SETTLE_DRIVERS_LEFT_OUT redis)
endif()

if(SETTLE_RABBITMQ)
  find_library(SETTLE_LIBRABBITMQ rabbitmq)
  if(NOT SETTLE_LIBRABBITMQ)
    settle_missing_client(rabbitmq "librabbitmq")
  endif()
  settle_driver(rabbitmq CLIENT rabbitmq OpenSSL::SSL FLAGS -lrabbitmq)
else()
  list(APPEND SETTLE_DRIVERS_LEFT_OUT rabbitmq)
endif()

if(SETTLE_KAFKA)
  find_library(SETTLE_LIBRDKAFKA rdkafka)
  if(NOT SETTLE_LIBRDKAFKA)
    settle_missing_client(kafka "librdkafka")
  endif()
  settle_driver(kafka CLIENT rdkafka FLAGS -lrdkafka)
else()
  list(APPEND SETTLE_DRIVERS_LEFT_OUT kafka)
endif()

string(STRIP "${SETTLE_CLIENT_FLAGS}" SETTLE_CLIENT_FLAGS)

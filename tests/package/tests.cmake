# The installed package, used as others would use it. A build with sanitizers installs nothing.

# Every public header compiles alone: a source file per header that includes nothing else.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
     ${PROJECT_SOURCE_DIR}/include/*.hpp)
if(NOT LIBPQXX_FOUND)
  list(REMOVE_ITEM headers settle/adapter/libpqxx.hpp)
endif()
foreach(driver IN LISTS SETTLE_DRIVERS_LEFT_OUT)
  list(REMOVE_ITEM headers settle/${driver}.hpp)
endforeach()
set(header_sources "")
foreach(header IN LISTS headers)
  string(REPLACE "/" "_" name ${header})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"  // and twice\n")
  list(APPEND header_sources ${source})
endforeach()
add_library(header_tests OBJECT ${header_sources})
target_link_libraries(header_tests PRIVATE settle_boost_json $<$<BOOL:${LIBPQXX_FOUND}>:PkgConfig::LIBPQXX>)
target_compile_options(header_tests PRIVATE -O0 -g0 -Werror)

set(here ${PROJECT_SOURCE_DIR}/tests/package)
set(work ${CMAKE_CURRENT_BINARY_DIR}/package)
set(prefix ${work}/prefix)
set(launcher ${SETTLE_CCACHE})
if(NOT launcher)
  set(launcher "")
endif()
set(compiler -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${launcher})

add_test(NAME package.exports COMMAND ${here}/check_exports $<TARGET_FILE:settle_shared> ${PROJECT_SOURCE_DIR})

add_test(NAME package.install
  COMMAND sh -c "rm -rf \"$2\" && \"$0\" --install \"$1\" --prefix \"$2\" && test -x \"$2/bin/settle\""
          ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR} ${prefix})
set_tests_properties(package.install PROPERTIES FIXTURES_SETUP installed)

add_test(NAME package.use_shared COMMAND ${here}/build_with_cmake ${prefix} ${work}/shared ${compiler})
add_test(NAME package.use_static
  COMMAND ${here}/build_with_cmake ${prefix} ${work}/static ${compiler} -DUSE_STATIC=ON)
add_test(NAME package.use_beast
  COMMAND sh -c "\"$0\" \"$@\" && \"$2/build/beast_once\"" ${here}/build_with_cmake ${prefix} ${work}/beast ${compiler}
          -DEXTRA_COMPONENT=beast)
foreach(driver IN LISTS SETTLE_DRIVERS)
  add_test(NAME package.use_${driver} COMMAND ${here}/build_driver ${prefix} ${work}/${driver} ${driver} ${compiler})
  set_tests_properties(package.use_${driver} PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 120)
endforeach()
foreach(driver IN LISTS SETTLE_DRIVERS_LEFT_OUT)
  string(TOUPPER ${driver} option)
  add_test(NAME package.${driver}_was_left_out COMMAND ${here}/build_driver ${prefix} ${work}/${driver} ${driver} ${compiler})
  set_tests_properties(package.${driver}_was_left_out PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 120
    PASS_REGULAR_EXPRESSION "-DSETTLE_${option}=ON")
endforeach()
add_test(NAME package.use_pkg_config
  COMMAND ${here}/build_with_pkg_config ${prefix} ${work}/pkg_config
          ${launcher} ${CMAKE_CXX_COMPILER})
add_test(NAME package.use_as_subfolder
  COMMAND ${CMAKE_COMMAND} --fresh -S ${here}/subfolder -B ${work}/subfolder -G Ninja
          -DSETTLE_SOURCE=${PROJECT_SOURCE_DIR} ${compiler})
add_test(NAME package.unknown_component_is_named
  COMMAND ${here}/build_with_cmake ${prefix} ${work}/unknown ${compiler} -DEXTRA_COMPONENT=carrier_pigeon)
set_tests_properties(package.unknown_component_is_named PROPERTIES
  PASS_REGULAR_EXPRESSION "settle has no component 'carrier_pigeon'")
set_tests_properties(
  package.use_shared package.use_static package.use_beast package.use_pkg_config package.unknown_component_is_named
  PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 120)

# The shop is built as its users would build it, and is asked what it can do. It takes minutes.
add_test(NAME package.shop
  COMMAND sh -c "rm -rf \"$2\" && \"$0\" -S \"$1\" -B \"$2\" -G Ninja -DCMAKE_PREFIX_PATH=\"$3\" $4 $5 && \"$0\" --build \"$2\" && \"$2/shop\" --help"
          ${CMAKE_COMMAND} ${PROJECT_SOURCE_DIR}/apps/shop ${work}/shop ${prefix} ${compiler})
set_tests_properties(package.shop PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 1800 LABELS long)

# Without the clients of other databases: tests of what is left, and what the programs say.
if(NOT SETTLE_DRIVERS_LEFT_OUT)
  add_test(NAME package.without_clients
    COMMAND ${here}/build_without_clients ${PROJECT_SOURCE_DIR} ${work}/without_clients ${compiler})
  set_tests_properties(package.without_clients PROPERTIES TIMEOUT 3600 LABELS long RUN_SERIAL ON)
endif()

# The pages describe a build with every driver.
if(SETTLE_DRIVERS_LEFT_OUT)
  return()
endif()

# What the pages of the documentation say, done with the installed package.
file(STRINGS ${PROJECT_SOURCE_DIR}/docs/pages.txt pages REGEX "^[a-z]")
foreach(line IN LISTS pages)
  string(REGEX MATCH "^([a-z_]+): (.*)$" matched "${line}")
  set(name ${CMAKE_MATCH_1})
  separate_arguments(files UNIX_COMMAND "${CMAKE_MATCH_2}")
  add_test(NAME docs.page.${name}
    COMMAND ${PROJECT_SOURCE_DIR}/tools/run_page ${work}/pages/${name} ${files})
  set_tests_properties(docs.page.${name} PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 180 SKIP_RETURN_CODE 77
    ENVIRONMENT_MODIFICATION "PATH=path_list_prepend:${PROJECT_BINARY_DIR}/docs/snippets;PATH=path_list_prepend:${prefix}/bin;CMAKE_PREFIX_PATH=set:${prefix};CMAKE_CXX_COMPILER_LAUNCHER=set:${launcher};CXX=set:${CMAKE_CXX_COMPILER}")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/pages.txt)
add_test(NAME docs.every_page_with_commands_is_run COMMAND ${PROJECT_SOURCE_DIR}/tools/run_page --check)

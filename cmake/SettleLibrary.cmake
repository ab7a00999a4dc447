# settle_library(<target>): the library from every .cpp below src/ and drivers/ that is not a test, and not of src/config,
# which only programs need, compiled once
# into objects that an archive and a shared library can both be made of: <target>_objects, and one
# <target>_<driver>_objects for each driver of this build, which alone sees its client library. Only what the public
# headers mark leaves the shared library; the archive, which tests and programs of this project link, gives them the
# rest as well.
function(settle_library target)
  settle_sources(sources src)
  foreach(driver IN LISTS SETTLE_DRIVERS)
    list(FILTER sources EXCLUDE REGEX "/src/compose/without_${driver}\\.cpp$")
  endforeach()
  foreach(driver IN LISTS SETTLE_DRIVERS_LEFT_OUT)
    list(FILTER sources EXCLUDE REGEX "/src/compose/${driver}\\.cpp$")
  endforeach()
  settle_objects(${target}_objects ${sources})
  set(all ${target}_objects)
  foreach(driver IN LISTS SETTLE_DRIVERS)
    settle_sources(sources drivers/${driver})
    settle_objects(${target}_${driver}_objects ${sources})
    target_link_libraries(${target}_${driver}_objects PRIVATE ${settle_client_of_${driver}})
    list(APPEND all ${target}_${driver}_objects)
  endforeach()
  list(TRANSFORM all REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  set(${target}_all_objects ${all} PARENT_SCOPE)
  add_library(${target} STATIC ${all})
  settle_link(${target} ${SETTLE_CLIENTS})
endfunction()

# settle_zoo_library(<target> <library>): the archive of <library> with the bug zoo's switches compiled in. Only the
# sources that have switches, those that include base/zoo.hpp, are compiled again.
function(settle_zoo_library target library)
  settle_sources(sources src)
  foreach(driver IN LISTS SETTLE_DRIVERS)
    settle_sources(more drivers/${driver})
    list(APPEND sources ${more})
  endforeach()
  set(switched "")
  foreach(source IN LISTS sources)
    file(STRINGS ${source} found REGEX "include \"base/zoo.hpp\"")
    if(found)
      list(APPEND switched ${source})
      file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${source})
      list(APPEND objects "/${relative}\\.o$")
    endif()
  endforeach()
  list(JOIN objects "|" objects)
  settle_objects(${target}_objects ${switched})
  target_compile_definitions(${target}_objects PRIVATE SETTLE_ZOO)

  add_library(${target} STATIC
    $<TARGET_OBJECTS:${target}_objects> "$<FILTER:${${library}_all_objects},EXCLUDE,${objects}>")
  target_compile_definitions(${target} PUBLIC SETTLE_ZOO)
  settle_link(${target} ${SETTLE_CLIENTS})
endfunction()

function(settle_sources result folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$|/src/config/")
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

function(settle_objects target)
  add_library(${target} OBJECT ${ARGN})
  add_dependencies(${target} settle_queries)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_definitions(${target} PRIVATE SETTLE_VERSION="${PROJECT_VERSION}")
  target_include_directories(${target}
    PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/drivers ${SETTLE_GENERATED_DIR})
  settle_link(${target})
endfunction()

# settle_shared_library(<target> <library>): the shared library from the objects of <library>.
function(settle_shared_library target library)
  set(exports ${PROJECT_SOURCE_DIR}/cmake/settle.map)
  add_library(${target} SHARED ${${library}_all_objects})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME settle VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${exports})
  target_link_options(${target} PRIVATE -Wl,--version-script=${exports} -Wl,--no-undefined)
  settle_link(${target} ${SETTLE_CLIENTS})
endfunction()

# settle_link(<target> [clients]...): what every form of the library needs and shows.
function(settle_link target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target}
    PUBLIC Threads::Threads
    PRIVATE ${ARGN} Boost::json fmt::fmt OpenSSL::SSL OpenSSL::Crypto)
endfunction()

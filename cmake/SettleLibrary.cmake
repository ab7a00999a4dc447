# settle_library(<target>): the library from every .cpp below src/ and drivers/ that is not a test.
function(settle_library target)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/src/*.cpp ${PROJECT_SOURCE_DIR}/drivers/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  add_library(${target} STATIC ${sources})
  add_dependencies(${target} settle_queries)
  target_include_directories(${target}
    PUBLIC ${PROJECT_SOURCE_DIR}/include
    PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/drivers ${SETTLE_GENERATED_DIR})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_definitions(${target} PRIVATE SETTLE_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${target}
    PUBLIC Threads::Threads
    PRIVATE SQLite::SQLite3 Boost::json fmt::fmt)
endfunction()

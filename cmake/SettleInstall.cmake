# What `cmake --install` puts where: headers, the shared library and the archive, the programs, a CMake package
# and a pkg-config file. The library can be moved to another prefix as it is.
include(CMakePackageConfigHelpers)

set(settle_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/settle)
set_target_properties(settle_shared PROPERTIES EXPORT_NAME settle)
set_target_properties(settle PROPERTIES EXPORT_NAME static)
# As a subfolder of somebody's project the library has the name that it has when it is installed.
add_library(settle::settle ALIAS settle)

# Headers alone, for components that add headers to either form of the library.
function(settle_header_component component)
  add_library(settle_${component} INTERFACE)
  set_target_properties(settle_${component} PROPERTIES EXPORT_NAME ${component})
  target_include_directories(settle_${component} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(settle_${component} INTERFACE cxx_std_20)
  target_link_libraries(settle_${component} INTERFACE ${ARGN})
  add_library(settle::${component} ALIAS settle_${component})
endfunction()
settle_header_component(boost_json Boost::json)
settle_header_component(beast Boost::headers)
settle_header_component(libpqxx PkgConfig::LIBPQXX)

# The library has every driver of this build, so a driver's target is the library; that of a driver that was left out is
# not there. settle-config.cmake does the same for the installed one.
foreach(driver IN LISTS SETTLE_DRIVERS)
  add_library(settle_${driver} INTERFACE)
  target_link_libraries(settle_${driver} INTERFACE settle)
  add_library(settle::${driver} ALIAS settle_${driver})
endforeach()

# What a driver that was left out would have to implement is not offered.
set(left_out "")
foreach(driver IN LISTS SETTLE_DRIVERS_LEFT_OUT)
  list(APPEND left_out PATTERN "settle/${driver}.hpp" EXCLUDE)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/settle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" ${left_out})

# One export per component, so that a user of one needs only what that one needs.
function(settle_install_component component target)
  install(TARGETS ${target} EXPORT settle-${component}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT settle-${component} NAMESPACE settle:: DESTINATION ${settle_package_dir})
endfunction()
settle_install_component(shared settle_shared)
settle_install_component(static settle)
settle_install_component(boost_json settle_boost_json)
settle_install_component(beast settle_beast)
settle_install_component(libpqxx settle_libpqxx)

list(JOIN SETTLE_DRIVERS ", " settle_driver_words)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/settle-config.cmake.in
  ${PROJECT_BINARY_DIR}/package/settle-config.cmake INSTALL_DESTINATION ${settle_package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/settle-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/settle-config.cmake
              ${PROJECT_BINARY_DIR}/package/settle-config-version.cmake
        DESTINATION ${settle_package_dir})

file(RELATIVE_PATH settle_pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" settle_pc_to_prefix "${settle_pc_to_prefix}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/settle.pc.in ${PROJECT_BINARY_DIR}/package/settle.pc @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/settle-boost-json.pc.in ${PROJECT_BINARY_DIR}/package/settle-boost-json.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/settle.pc ${PROJECT_BINARY_DIR}/package/settle-boost-json.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(program settle_cli settled)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

# The unit has to name the program by its full path: the one thing here that knows the prefix.
if(TARGET settled)
  file(READ ${PROJECT_SOURCE_DIR}/daemon/settled.service settle_unit)
  string(REPLACE /usr/bin/settled ${CMAKE_INSTALL_FULL_BINDIR}/settled settle_unit "${settle_unit}")
  file(WRITE ${PROJECT_BINARY_DIR}/package/settled.service "${settle_unit}")
  install(FILES ${PROJECT_BINARY_DIR}/package/settled.service DESTINATION lib/systemd/system)
endif()

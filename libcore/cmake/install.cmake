# What `cmake --install` puts where: the library, its headers, and the two ways to find it:
# find_package(hcomm) with hcomm::core, and pkg-config hcomm. tests/consumer builds against both.
include(CMakePackageConfigHelpers)

install(TARGETS hcomm-core EXPORT hcomm-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  NAMELINK_COMPONENT development)
install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include/hcomm
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hcomm)
install(EXPORT hcomm-targets NAMESPACE hcomm:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/hcomm-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/hcomm-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/hcomm-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/hcomm-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/hcomm-config-version.cmake
  DESTINATION ${package_dir} COMPONENT development)

# The .pc file finds its prefix from its own place, so that an installation can be moved.
file(RELATIVE_PATH pc_to_prefix
  /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/hcomm.pc.in ${CMAKE_CURRENT_BINARY_DIR}/hcomm.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hcomm.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

# `cmake --install` gives a package: find_package(Tidemark CONFIG) and link tidemark::tidemark.
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Tidemark)

install(TARGETS tidemark_shared tidemark_static EXPORT TidemarkTargets)
install(TARGETS tidemark_command)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tidemark DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT TidemarkTargets NAMESPACE tidemark:: DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TidemarkConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/TidemarkConfig.cmake ${PROJECT_BINARY_DIR}/TidemarkConfigVersion.cmake
        DESTINATION ${package})

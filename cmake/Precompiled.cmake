# Headers that are parsed once for many sources. Sources include what they use all the same: clang builds
# without any of this (Toolchain.cmake), so that a forgotten include is found.
#
#   tidemark_standard_headers          what most sources of the library read
#   tidemark_precompiled(NAME HEADER...)
#       a target whose headers programs take over, where all their flags agree:
#       target_precompile_headers(PROGRAM REUSE_FROM NAME)
set(tidemark_standard_headers <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstdio> <cstdlib> <cstring> <functional>
    <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view> <tuple>
    <type_traits> <unordered_map> <utility> <vector>)

function(tidemark_precompiled name)
  set(source ${PROJECT_BINARY_DIR}/precompiled/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// A target has a source.\n")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PRIVATE tidemark_flags tidemark::tidemark)
  # As programs are compiled; a library would get -fPIC.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIE)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

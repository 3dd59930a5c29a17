# How every target of the project is compiled. Nothing here reaches a consumer: flags live in the
# interface target `tidemark_flags`, which is linked PRIVATE and never installed.
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)  # Not in the cache, which belongs to the project on top.
endif()
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/compile.sh ${CCACHE})
endif()
# lld links the library with LLVM inside in a sixth of the time the default linker needs.
find_program(LLD NAMES ld.lld-19 REQUIRED)

add_library(tidemark_flags INTERFACE)
target_compile_features(tidemark_flags INTERFACE cxx_std_20)
# Contraction would change bits: a product and a sum round separately unless fma is written.
# Integers wrap, in tensors and in the bit patterns of floats alike.
target_compile_options(tidemark_flags INTERFACE -Wall -Wextra -Werror -ffp-contract=off -fwrapv)
target_include_directories(tidemark_flags INTERFACE ${PROJECT_SOURCE_DIR})
# Names of ours cannot be replaced from outside, so calls among them need no detour and may be inlined.
target_compile_options(tidemark_flags INTERFACE -fno-semantic-interposition)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort of g++ 12's library calls a function that the same library calls deprecated.
  target_compile_options(tidemark_flags INTERFACE -Wno-deprecated-declarations)
  target_link_options(tidemark_flags INTERFACE --ld-path=${LLD})
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)  # One compiler sees each source alone.
else()
  # What ccache reads then names the precompiled header, so that a changed one counts.
  target_compile_options(tidemark_flags INTERFACE -fpch-preprocess)
  # g++ takes only the linker's short name and looks for ld.lld on its own search path.
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/linker)
  file(CREATE_LINK ${LLD} ${PROJECT_BINARY_DIR}/linker/ld.lld SYMBOLIC)
  target_link_options(tidemark_flags INTERFACE -B${PROJECT_BINARY_DIR}/linker -fuse-ld=lld)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(tidemark_flags INTERFACE TIDEMARK_DEBUG=1)
endif()
if(TIDEMARK_SANITIZE)
  # Undefined behaviour ends the test; by default it is only printed, and the test would pass.
  target_compile_options(tidemark_flags INTERFACE -fsanitize=${TIDEMARK_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_link_options(tidemark_flags INTERFACE -fsanitize=${TIDEMARK_SANITIZE})
  if(TIDEMARK_SANITIZE STREQUAL "thread")
    # g++ loses sight of what an optional holds among the calls that this one puts in.
    target_compile_options(tidemark_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

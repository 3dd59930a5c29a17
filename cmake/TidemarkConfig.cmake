# find_package(Tidemark CONFIG REQUIRED [COMPONENTS static|shared])
#
#   tidemark::shared, tidemark::static   the two forms; both hold all they need
#   tidemark::tidemark                   the form that COMPONENTS names; else the one that
#                                        BUILD_SHARED_LIBS asks for; else the shared one
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/TidemarkTargets.cmake)

if(Tidemark_FIND_COMPONENTS)
  list(GET Tidemark_FIND_COMPONENTS 0 Tidemark_form)
elseif(DEFINED BUILD_SHARED_LIBS AND NOT BUILD_SHARED_LIBS)
  set(Tidemark_form static)
else()
  set(Tidemark_form shared)
endif()
if(TARGET tidemark::${Tidemark_form})
  if(NOT TARGET tidemark::tidemark)
    add_library(tidemark::tidemark ALIAS tidemark::${Tidemark_form})
  endif()
else()
  set(Tidemark_FOUND FALSE)
  set(Tidemark_NOT_FOUND_MESSAGE "Tidemark has the components static and shared, not ${Tidemark_form}")
endif()

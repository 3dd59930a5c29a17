# LLVM 19 as code inside our library: linked statically, its symbols hidden, its headers seen only by
# the few sources given to tidemark_llvm_sources(). Shared libLLVM would cost every process 14 ms and
# 48 MB at start, and would clash with another LLVM in the same process.
#
#   tidemark_llvm                   interface target: headers (SYSTEM) and static archives; link PRIVATE
#   tidemark_llvm_sources(FILE...)  adds sources that include llvm/...; they build apart from the rest
#   tidemark_llvm_part(OUT)         one object file: those sources and the LLVM they use, only
#                                   tidemark symbols global, its allocations sent to functions of ours.
#                                   It is what makes the static library link on a machine without LLVM.
find_program(LLVM_CONFIG NAMES llvm-config-19 REQUIRED)
find_program(GNU_LD NAMES ld.bfd REQUIRED)
execute_process(COMMAND ${LLVM_CONFIG} --bindir OUTPUT_VARIABLE llvm_bin OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
# The static archives are position-independent. No AsmParser and no Disassembler of the target: kernels
# are IR, never text. Archives are pulled member by member, so naming `passes` costs nothing by itself.
set(tidemark_llvm_components orcjit x86codegen x86desc x86info passes)
execute_process(COMMAND ${LLVM_CONFIG} --includedir OUTPUT_VARIABLE llvm_include OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${LLVM_CONFIG} --link-static --libfiles ${tidemark_llvm_components}
                OUTPUT_VARIABLE llvm_archives OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(llvm_archives)
# LLVM reads compressed debug sections with these two. Static as well, so that nothing is left over for
# whoever links the static library. libxml2 and libz3, which llvm-config names too, are never reached.
find_library(TIDEMARK_ZLIB NAMES libz.a REQUIRED)
find_library(TIDEMARK_ZSTD NAMES libzstd.a REQUIRED)

add_library(tidemark_llvm INTERFACE)
target_include_directories(tidemark_llvm SYSTEM INTERFACE ${llvm_include})
target_link_libraries(tidemark_llvm INTERFACE ${llvm_archives} ${TIDEMARK_ZLIB} ${TIDEMARK_ZSTD} ${CMAKE_DL_LIBS})

# The names other programs may see, as globs over mangled names: the list serves the version script of
# the shared library and the localising of the static one.
set(tidemark_symbols ${PROJECT_SOURCE_DIR}/cmake/symbols.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tidemark_symbols})
file(STRINGS ${tidemark_symbols} symbols REGEX "^[^#]")
list(JOIN symbols ";\n  " symbols)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tidemark.map CONTENT "{\nglobal:\n  @symbols@;\nlocal:\n  *;\n};\n" @ONLY)

function(tidemark_llvm_sources)
  if(NOT TARGET tidemark_llvm_objects)
    add_library(tidemark_llvm_objects OBJECT)
    target_link_libraries(tidemark_llvm_objects PRIVATE tidemark_flags tidemark_llvm)
  endif()
  target_sources(tidemark_llvm_objects PRIVATE ${ARGN})
endfunction()

function(tidemark_llvm_part out)
  set(part ${CMAKE_CURRENT_BINARY_DIR}/llvm_part.o)
  set(script ${PROJECT_SOURCE_DIR}/cmake/llvm_part.sh)
  set(allocators ${PROJECT_SOURCE_DIR}/cmake/llvm_allocators.txt)
  add_custom_command(
    OUTPUT ${part}
    COMMAND bash ${script} ${llvm_bin} ${GNU_LD} ${tidemark_symbols} ${allocators} ${part}
            $<TARGET_OBJECTS:tidemark_llvm_objects> ${llvm_archives} ${TIDEMARK_ZLIB} ${TIDEMARK_ZSTD}
    DEPENDS ${script} ${tidemark_symbols} ${allocators} $<TARGET_OBJECTS:tidemark_llvm_objects>
    COMMENT "Joining LLVM and the sources that use it into one object"
    COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${part} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set(${out} ${part} PARENT_SCOPE)
endfunction()

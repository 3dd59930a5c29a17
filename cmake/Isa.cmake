# tidemark_isa_source(TARGET SOURCE ISA): how a kernel is compiled for one instruction set (baseline, avx2
# or avx512; see tidemark/device/cpu/features.h). Loops over the operations of loops/lane.h become vector
# code: nobody reads errno or the exception flags, so neither stands in the way.
set(tidemark_isa_baseline)
set(tidemark_isa_avx2 -mavx2 -mfma -mf16c)
set(tidemark_isa_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mprefer-vector-width=512)

function(tidemark_isa_source target source isa)
  set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS
    "$<$<CONFIG:Release>:-O3>;-fno-math-errno;-fno-trapping-math;${tidemark_isa_${isa}}"
    SKIP_PRECOMPILE_HEADERS ON)
endfunction()

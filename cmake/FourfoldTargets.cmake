# The helper functions of the build.

# fourfold_add_library(<name> HEADERS .. SOURCES .. [PUBLIC <target>..] [PRIVATE <target>..])
# One library room: public headers in include/fourfold/<name>/, everything else private. Exports only its own include
# folder, so an include against the arrows of docs/design.md does not compile. Static, or shared where many programs go into
# one bundle (BUILD_SHARED_LIBS).
function(fourfold_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;SOURCES;PUBLIC;PRIVATE")
  add_library(fourfold_${name} ${arg_SOURCES})
  add_library(fourfold::${name} ALIAS fourfold_${name})
  list(TRANSFORM arg_HEADERS PREPEND include/fourfold/${name}/)
  target_sources(fourfold_${name} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${arg_HEADERS})
  target_include_directories(fourfold_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(fourfold_${name} PUBLIC ${arg_PUBLIC} fourfold::options
                                         PRIVATE ${arg_PRIVATE} fourfold::warnings)
  fourfold_optimise_sanitized(fourfold_${name})
endfunction()

# fourfold_optimise_sanitized(<target>): for what must not crawl under sanitizers: the rooms, which every test runs, and tests that
# compute much themselves. Other tests, and programs, would compile two to four times as long, and run little.
function(fourfold_optimise_sanitized target)
  if(FOURFOLD_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
    set_target_properties(${target} PROPERTIES FOURFOLD_OPTIMISE_SANITIZED ON)
  endif()
endfunction()

# fourfold_add_test(<name> SOURCES .. LIBRARIES .. [RANKS 1 2 4] [DEVICES] [LABELS ..] [TIMEOUT seconds] [GPU_SECONDS seconds]
#                   [COST seconds])
# A Catch2 program. Without RANKS it is one ctest entry with Catch2's own main, or, in a build of shared libraries, a module
# and a link to the program that loads it (tests/harness/module_main.cpp). With RANKS it is built with the main of
# tests/harness/mpi_main.cpp and entered once per rank count as <name>.np<N>, run by MPI's launcher; with DEVICES the
# ranks are those of MpiRuntime::device_world(). COST: takes minutes under sanitizers, and begins before others, so that no
# processor is without work at the end. The target tests_<label> builds the programs of a label. The label
# `threads` says that ranks are threads, so ThreadSanitizer has something to see; `device` that a GPU, an emulated one
# too, is what it is about; `gpu_long` that it is worth its time on a real one. The last two are what
# fourfold_list_device_tests() lists, with the seconds that a GPU gets for all of it (300). `crash` says that the process
# is ended in the middle, which sanitizers do not allow. One without ranks and without a label, `threads` aside, is
# `portable`: the same code whatever computes, and seen best under sanitizers (FOURFOLD_PORTABLE_TESTS).
function(fourfold_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "DEVICES" "TIMEOUT;GPU_SECONDS;COST" "SOURCES;LIBRARIES;RANKS;LABELS")
  if(NOT arg_TIMEOUT)  # ends what hangs; sanitizers on a busy machine are 20 times slower
    set(arg_TIMEOUT 1000)
  endif()
  set(optimised_too ${arg_LABELS})
  list(REMOVE_ITEM optimised_too threads)
  if(NOT arg_RANKS AND NOT optimised_too)
    list(APPEND arg_LABELS portable)
  endif()
  if(BUILD_SHARED_LIBS AND NOT arg_RANKS)
    add_library(${name} MODULE ${arg_SOURCES})
    set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(${name} fourfold_module_main)
    file(CREATE_LINK fourfold-tests ${PROJECT_BINARY_DIR}/tests/${name} SYMBOLIC)
  else()
    add_executable(${name} ${arg_SOURCES})
  endif()
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} fourfold::warnings)
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests/harness ${PROJECT_SOURCE_DIR}/tests/harness/include)
  # Catch2's sections and GCC 12's optimiser together make false alarms of this warning; host-debug keeps it.
  # What a test itself computes is little: optimised less, it compiles in two thirds of the time.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Wno-maybe-uninitialized;-O1>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  foreach(label IN LISTS arg_LABELS)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
  if("device" IN_LIST arg_LABELS OR "gpu_long" IN_LIST arg_LABELS)
    if(NOT arg_GPU_SECONDS)
      set(arg_GPU_SECONDS 300)
    endif()
    if(NOT arg_RANKS OR "1" IN_LIST arg_RANKS)  # one GPU is one rank
      set_property(GLOBAL APPEND PROPERTY FOURFOLD_DEVICE_TESTS "${name} ${arg_GPU_SECONDS}")
    endif()
  endif()
  if(NOT arg_RANKS)
    if(BUILD_SHARED_LIBS)  # its Catch2 is that of the program that loads it
      target_link_libraries(${name} PRIVATE fourfold::catch2_headers)
    else()
      target_link_libraries(${name} PRIVATE Catch2::Catch2WithMain)
    endif()
    add_test(NAME ${name} COMMAND ${PROJECT_BINARY_DIR}/tests/${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "unit;${arg_LABELS}")
    if(arg_COST)
      set_tests_properties(${name} PROPERTIES COST ${arg_COST})
    endif()
    if("portable" IN_LIST arg_LABELS AND NOT FOURFOLD_PORTABLE_TESTS)
      set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
      set_tests_properties(${name} PROPERTIES DISABLED ON)
    endif()
    return()
  endif()
  if(arg_DEVICES)
    target_link_libraries(${name} PRIVATE fourfold::nccl_test_main Catch2::Catch2)
  else()
    target_link_libraries(${name} PRIVATE fourfold::mpi_test_main Catch2::Catch2)
  endif()
  foreach(ranks IN LISTS arg_RANKS)
    add_test(NAME ${name}.np${ranks}
             COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS}
                     $<TARGET_FILE:${name}> ${MPIEXEC_POSTFLAGS})
    set_tests_properties(${name}.np${ranks} PROPERTIES
      TIMEOUT ${arg_TIMEOUT} PROCESSORS ${ranks} LABELS "mpi;RANK_${ranks};${arg_LABELS}"
      ENVIRONMENT FOURFOLD_EMULATED_GPUS=${ranks})
  endforeach()
endfunction()

# fourfold_list_device_tests(): tests/device_tests.txt of a build for devices, which scripts/gpu-check runs and
# scripts/bundle packs: a line "<name> <seconds>" for each test labelled `device` or `gpu_long` that one rank can run, as it is
# started by itself there. Once all are added.
function(fourfold_list_device_tests)
  get_property(lines GLOBAL PROPERTY FOURFOLD_DEVICE_TESTS)
  list(SORT lines)
  list(JOIN lines "\n" text)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tests/device_tests.txt CONTENT "${text}\n" @ONLY)
endfunction()

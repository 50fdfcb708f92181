# The library fourfold::build_facts: what `fourfold version` tells. Versions are known at configure time; the commit is
# asked for at every build, and only a new answer recompiles anything. Run as a script (cmake -P) this file is the
# asking: it writes OUTPUT when the answer for SOURCE_DIR has changed.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(commit "unknown")
  find_program(GIT git)
  if(GIT AND EXISTS ${SOURCE_DIR}/.git)
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude *
                    OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(answer)
      set(commit "${answer}")
    endif()
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define FOURFOLD_COMMIT \"@commit@\"\n" @ONLY)
  return()
endif()

string(REGEX REPLACE "[\t\r\n].*" "" mpi_version "${MPI_CXX_LIBRARY_VERSION_STRING}")
if(MPI_CXX_LIBRARY_VERSION_STRING MATCHES "^MPICH[^:]*:[ \t]*([0-9.]+)")
  set(mpi_version "MPICH ${CMAKE_MATCH_1}")
elseif(NOT mpi_version)
  set(mpi_version "unknown")
endif()
set(products "oneDNN=unknown")
if(FOURFOLD_DEVICE STREQUAL "cuda")
  set(products "CUDA=${CUDAToolkit_VERSION}")
elseif(EXISTS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h)
  file(STRINGS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h dnnl_lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  list(TRANSFORM dnnl_lines REPLACE "[^0-9]" "")
  list(JOIN dnnl_lines "." products)
  string(PREPEND products "oneDNN=")
endif()
set(library_facts "")
foreach(fact "Kokkos=${Kokkos_VERSION}" "${products}" "MPI=${mpi_version}" "HDF5=${HDF5_VERSION}"
             "fmt=${fmt_VERSION}" "CLI11=${CLI11_VERSION}" "toml++=${tomlplusplus_VERSION}"
             "nlohmann-json=${nlohmann_json_VERSION}" "simdjson=${simdjson_VERSION}" "xxHash=${XXHASH_VERSION}" "PCRE2=${PCRE2_VERSION}"
             "utf8proc=${UTF8PROC_VERSION}"
             "SentencePiece=${SENTENCEPIECE_VERSION}")
  string(REGEX REPLACE "^([^=]*)=(.*)$" " \\\\\n  {\"\\1\", \"\\2\"}," fact "${fact}")
  string(APPEND library_facts "${fact}")
endforeach()

set(facts_folder ${PROJECT_BINARY_DIR}/build_facts)
file(CONFIGURE OUTPUT ${facts_folder}/build_facts.inc @ONLY CONTENT [[
#define FOURFOLD_VERSION "@PROJECT_VERSION@"
#define FOURFOLD_COMPILER "@CMAKE_CXX_COMPILER_ID@ @CMAKE_CXX_COMPILER_VERSION@"
#define FOURFOLD_BUILD_TYPE "@CMAKE_BUILD_TYPE@"
#define FOURFOLD_SANITIZERS "@FOURFOLD_SANITIZE@"
#define FOURFOLD_LIBRARY_FACTS@library_facts@
]])
add_custom_target(fourfold_commit
  COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${PROJECT_SOURCE_DIR} -D OUTPUT=${facts_folder}/commit.inc
          -P ${CMAKE_CURRENT_LIST_FILE}
  BYPRODUCTS ${facts_folder}/commit.inc
  COMMENT "Asking git for the commit")
add_library(fourfold_build_facts STATIC ${PROJECT_SOURCE_DIR}/src/base/build_facts.cpp)
add_library(fourfold::build_facts ALIAS fourfold_build_facts)
add_dependencies(fourfold_build_facts fourfold_commit)
target_include_directories(fourfold_build_facts PRIVATE ${facts_folder})
target_compile_definitions(fourfold_build_facts PRIVATE FOURFOLD_NATIVE_BUILD=$<BOOL:${FOURFOLD_NATIVE}>)
target_link_libraries(fourfold_build_facts PUBLIC fourfold::base PRIVATE fourfold::warnings)

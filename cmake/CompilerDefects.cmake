# What a compiler gets wrong, found by running it rather than by its version.
include(CheckCXXSourceRuns)
include(CMakePushCheckState)

# GCC 12.2 stores {2, 2, 2, 0} as {2, 2, 2, 2} where it may use AVX-512: it fills a vector with the first element of a
# constant without looking at the last one. Any code can have such a constant, so AVX-512 is left out then (oneDNN, which
# compiles for itself, still uses it).
function(fourfold_leave_out_defects target)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_FLAGS "-O2")
  if(FOURFOLD_NATIVE)
    string(APPEND CMAKE_REQUIRED_FLAGS " -march=native")
  endif()
  set(CMAKE_REQUIRED_QUIET ON)
  check_cxx_source_runs([[
    #include <cstring>
    __attribute__((noinline)) void fill(long* values) {
      const long constant[4] = {2, 2, 2, 0};
      std::memcpy(values, constant, sizeof constant);
    }
    int main() {
      long values[4] = {9, 9, 9, 9};
      fill(values);
      return values[0] == 2 && values[1] == 2 && values[2] == 2 && values[3] == 0 ? 0 : 1;
    }
  ]] FOURFOLD_VECTOR_CONSTANTS_ARE_RIGHT)
  cmake_pop_check_state()
  if(NOT FOURFOLD_VECTOR_CONSTANTS_ARE_RIGHT)
    message(STATUS "This compiler gets constants wrong with AVX-512: left out")
    target_compile_options(${target} INTERFACE -mno-avx512f)
  endif()
endfunction()

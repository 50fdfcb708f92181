# Everything fourfold stands on, found once. Debian 12 and Spack both provide all of it; nothing is downloaded.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)

# Debian keeps several MPIs side by side and its alternatives may point at another one; fourfold is built with MPICH and
# the parallel HDF5 that belongs to it. Name MPI_HOME to have another MPI found there.
if(NOT MPI_HOME AND NOT DEFINED ENV{MPI_HOME})
  find_program(MPI_C_COMPILER mpicc.mpich)
  find_program(MPI_CXX_COMPILER mpicxx.mpich)
  find_program(MPIEXEC_EXECUTABLE mpiexec.mpich)
  find_program(HDF5_C_COMPILER_EXECUTABLE h5pcc.mpich)
endif()
set(MPI_DETERMINE_LIBRARY_VERSION TRUE)
find_package(MPI REQUIRED COMPONENTS C CXX)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)

set(HDF5_PREFER_PARALLEL TRUE)
find_package(HDF5 REQUIRED COMPONENTS C)

# CUDA's runtime: the real one is linked statically, as it looks for the driver only when it is called: a program that
# needs no GPU starts where there is none. Of an emulated device only the headers are CUDA's.
if(NOT FOURFOLD_DEVICE STREQUAL "host")
  find_package(CUDAToolkit 12.8 REQUIRED)
  add_library(fourfold_cuda_runtime INTERFACE)
  add_library(fourfold::cuda_runtime ALIAS fourfold_cuda_runtime)
  if(FOURFOLD_DEVICE STREQUAL "cuda")
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    target_link_libraries(fourfold_cuda_runtime INTERFACE CUDA::cudart_static)
  elseif(FOURFOLD_DEVICE STREQUAL "emulated")
    target_link_libraries(fourfold_cuda_runtime INTERFACE fourfold::emulated_gpu)
  else()
    message(FATAL_ERROR "FOURFOLD_DEVICE is '${FOURFOLD_DEVICE}' use host, cuda or emulated")
  endif()
endif()

# Debian's Kokkos (inside Trilinos) names an include directory that does not exist.
find_package(Kokkos REQUIRED)
if(EXISTS /usr/include/trilinos/Kokkos_Core.hpp AND Kokkos_VERSION VERSION_LESS 4)
  set_target_properties(Kokkos::kokkos PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "" INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "")
  foreach(part kokkoscore kokkoscontainers kokkosalgorithms)
    if(TARGET Kokkos::${part})
      set_target_properties(Kokkos::${part} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES /usr/include/trilinos)
    endif()
  endforeach()
  set_target_properties(Kokkos::kokkos PROPERTIES INTERFACE_INCLUDE_DIRECTORIES /usr/include/trilinos)
endif()

# Debian's dnnl-config.cmake demands OpenCL, so the library is found by hand.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(fourfold_dnnl INTERFACE)
add_library(fourfold::dnnl ALIAS fourfold_dnnl)
target_include_directories(fourfold_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(fourfold_dnnl INTERFACE ${DNNL_LIBRARY} OpenMP::OpenMP_CXX)

# The kernel's asynchronous I/O; the library has neither a CMake nor a pkg-config file.
find_path(LIBAIO_INCLUDE_DIR libaio.h REQUIRED)
find_library(LIBAIO_LIBRARY aio REQUIRED)
add_library(fourfold_aio INTERFACE)
add_library(fourfold::aio ALIAS fourfold_aio)
target_include_directories(fourfold_aio SYSTEM INTERFACE ${LIBAIO_INCLUDE_DIR})
target_link_libraries(fourfold_aio INTERFACE ${LIBAIO_LIBRARY})

if(FOURFOLD_TESTS)
  find_package(Catch2 3 REQUIRED)
endif()

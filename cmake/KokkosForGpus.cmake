# What a Kokkos with CUDA must not be, from the options that its package tells; said before anything compiles.
if(Kokkos_ENABLE_IMPL_CUDA_MALLOC_ASYNC)
  message(FATAL_ERROR
    "The Kokkos ${Kokkos_VERSION} in ${Kokkos_DIR} takes its memory by cudaMallocAsync (that fails while a CUDA graph is recorded, and "
    "such memory can neither be registered with NCCL nor seen by other processes) build it with "
    "-DKokkos_ENABLE_IMPL_CUDA_MALLOC_ASYNC=OFF, with Spack ~alloc_async, or take 4.5 or later, where that is the default")
endif()

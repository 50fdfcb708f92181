# The oldest compute capability that code of this build runs on: of each list of architectures the first, and of ours and
# Kokkos's the later. What comes after runs by PTX; where there is none ("90-real", "90a") the first launch says that there is no code.
function(fourfold_oldest_gpu result)
  set(oldest 80)
  foreach(list IN ITEMS CMAKE_CUDA_ARCHITECTURES Kokkos_CUDA_ARCHITECTURES)
    set(first "")
    foreach(architecture IN LISTS ${list})
      # "90", "90a-real"; of names (native, all, all-major) nothing is known before they run.
      if(architecture MATCHES "^([0-9]+)" AND (first STREQUAL "" OR CMAKE_MATCH_1 LESS first))
        set(first ${CMAKE_MATCH_1})
      endif()
    endforeach()
    if(NOT first STREQUAL "" AND first GREATER oldest)
      set(oldest ${first})
    endif()
  endforeach()
  set(${result} ${oldest} PARENT_SCOPE)
endfunction()

# The headers of others that most files read, precompiled: with Clang, half of the time of a build that optimises nothing
# (GCC 12 gains nothing). An object library whose objects are no code: `precompiled.cpp`, compiled as a header with the options
# of all that reads it. Ours are not in it, so a file that leaves one out does not compile here either.
option(FOURFOLD_PRECOMPILED_HEADERS "Precompile the headers of others (with Clang only)" ON)

# fourfold_precompile(<options>): <options>, an interface library, has its users read the precompiled headers. Those of
# fourfold_optimise_sanitized() have ones of their own, as what is optimised differs in a macro; a target whose options differ
# otherwise (those of the kernels) has none: its property FOURFOLD_NOT_PRECOMPILED.
function(fourfold_precompile options)
  if(NOT FOURFOLD_PRECOMPILED_HEADERS OR NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang" OR NOT FOURFOLD_SANITIZE)
    return()
  endif()
  set(folder ${PROJECT_BINARY_DIR}/precompiled)
  foreach(name plain optimised)
    add_library(fourfold_precompiled_${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
    target_link_libraries(fourfold_precompiled_${name} PRIVATE fourfold_options fmt::fmt nlohmann_json::nlohmann_json)
    target_compile_options(fourfold_precompiled_${name} PRIVATE -xc++-header -fpch-instantiate-templates)
    # Clang refuses one from a cache, of another folder or time.
    set_target_properties(fourfold_precompiled_${name} PROPERTIES CXX_COMPILER_LAUNCHER "")
    # ccache tells precompiled headers from one another by what is in this file: the text, wherever the folder is.
    add_custom_command(
      OUTPUT ${folder}/${name}.pch ${folder}/${name}.pch.sum
      COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_OBJECTS:fourfold_precompiled_${name}> ${folder}/${name}.pch
      COMMAND ${CMAKE_COMMAND} -D COMPILER=${CMAKE_CXX_COMPILER} -D HEADERS=${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp
              -D PRECOMPILED=${folder}/${name}.pch -P ${PROJECT_SOURCE_DIR}/cmake/precompiled_sum.cmake
      DEPENDS $<TARGET_OBJECTS:fourfold_precompiled_${name}> ${PROJECT_SOURCE_DIR}/cmake/precompiled_sum.cmake
      VERBATIM)
    list(APPEND files ${folder}/${name}.pch)
  endforeach()
  target_compile_options(fourfold_precompiled_optimised PRIVATE -O1)
  add_custom_target(fourfold_precompiled DEPENDS ${files})
  add_dependencies(${options} fourfold_precompiled)
  set(optimised $<BOOL:$<TARGET_PROPERTY:FOURFOLD_OPTIMISE_SANITIZED>>)
  set(wanted $<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:FOURFOLD_NOT_PRECOMPILED>>>>)
  target_compile_options(${options} INTERFACE
    -fPIC "$<${wanted}:SHELL:-include-pch ${folder}/$<IF:${optimised},optimised,plain>.pch>")
endfunction()

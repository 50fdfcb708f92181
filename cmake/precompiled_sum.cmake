# Writes PRECOMPILED.sum: what the text of HEADERS is, read by COMPILER; where that cannot be told, what PRECOMPILED is.
execute_process(COMMAND ${COMPILER} --version OUTPUT_VARIABLE version)
execute_process(COMMAND ${COMPILER} -std=c++20 -E -P ${HEADERS} OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE code)
if(code EQUAL 0)
  string(SHA256 sum "${version}${text}")
else()
  file(SHA256 ${PRECOMPILED} sum)
endif()
file(WRITE ${PRECOMPILED}.sum "${sum}\n")

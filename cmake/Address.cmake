# FOURFOLD_REPORT_IT: what a message about a bug of ours asks for. It says where, if the project has a public address (scripts/address).
set(FOURFOLD_REPORT_IT "please report it")
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../ADDRESS address REGEX "^https://")
if(address)
  string(APPEND FOURFOLD_REPORT_IT " at ${address}/issues")
endif()
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../ADDRESS)
endif()

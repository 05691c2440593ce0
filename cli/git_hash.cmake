# Writes to HEADER which commit SOURCE is at, "-dirty" where files differ from it; "" where SOURCE
# is no clone. A header that says so already stays untouched.
find_package(Git QUIET)
set(hash "")
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --exclude *
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE hash
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define HCOMM_BUILD_GIT_HASH \"${hash}\"\n")

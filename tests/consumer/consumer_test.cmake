# Run by ctest (see CMakeLists.txt). The first command that fails ends it.
set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${prefix} ${WORK}/build ${WORK}/moved)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "${command}\nended with ${result}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect_lines what)
  foreach(line IN LISTS ARGN)
    if(NOT output MATCHES "${line}")
      message(FATAL_ERROR "${what} printed no line '${line}':\n${output}")
    endif()
  endforeach()
endfunction()

set(flags "")
if(SANITIZE)
  set(flags -fsanitize=${SANITIZE})
endif()
run(${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${WORK}/moved)
file(RENAME ${WORK}/moved ${prefix})  # an installation may be moved

# CMake: find_package(hcomm), hcomm::core. With our own build program: there may be no other.
run(${CMAKE_COMMAND} -S ${PROJECT} -B ${WORK}/build -G ${GENERATOR}
  -D CMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -D CMAKE_PREFIX_PATH=${prefix}
  -D CMAKE_BUILD_TYPE=Release -D CMAKE_C_COMPILER=${CC} -D CMAKE_CXX_COMPILER=${CXX}
  -D CMAKE_C_FLAGS=${flags} -D CMAKE_CXX_FLAGS=${flags})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${prefix}/bin/hcc-launch -n 3 ${WORK}/build/consumer)
expect_lines(consumer "rank 0 of 3: ok" "rank 1 of 3: ok" "rank 2 of 3: ok")

# pkg-config, and the header in C99 without extensions.
find_program(pkg_config pkg-config)
if(NOT pkg_config)
  message(FATAL_ERROR "pkg-config is not installed")
endif()
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
run(${pkg_config} --cflags --libs hcomm)
separate_arguments(options UNIX_COMMAND "${output}")
run(${CC} -std=c99 -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror ${flags}
  ${EXAMPLES}/allreduce/allreduce.c -o ${WORK}/build/allreduce ${options}
  -Wl,-rpath,${prefix}/${LIBDIR})
run(${prefix}/bin/hcc-launch -n 4 ${WORK}/build/allreduce)
expect_lines(allreduce "rank 0: 10" "rank 3: 10")

# What is installed is what was meant to be: no header of ours but the public ones.
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*)
list(SORT headers)
if(NOT headers STREQUAL "hcomm/hcomm.h;hcomm/hcomm.hpp")
  message(FATAL_ERROR "installed headers: ${headers}")
endif()

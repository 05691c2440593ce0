# hcomm_layer(NAME LINKS... ): one static library a folder of libcore, made of every .cpp in it.
# The links are the picture of libcore/README.md; tests/tidy_test holds the #includes to it.
add_library(hcomm_options INTERFACE)
target_compile_options(hcomm_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)  # g++ 12 sees overlaps in std::string that are not there
target_compile_features(hcomm_options INTERFACE cxx_std_20)
target_include_directories(hcomm_options INTERFACE
  ${PROJECT_SOURCE_DIR}/libcore ${PROJECT_SOURCE_DIR}/libcore/include)

function(hcomm_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(hcomm_${name} STATIC ${sources})
  target_link_libraries(hcomm_${name} PUBLIC hcomm_options fmt::fmt Threads::Threads)
  # A few hundred bytes a thread, within what the C library keeps free for libraries that are loaded
  # late; each access is then an instruction instead of a call.
  target_compile_options(hcomm_${name} PRIVATE -ftls-model=initial-exec)
  foreach(layer IN LISTS ARGN)
    target_link_libraries(hcomm_${name} PUBLIC hcomm_${layer})
  endforeach()
endfunction()

# Language level, warnings and visibility of every target of the project, and ifd_library(), which
# makes one.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Nobody throws through C, and debuggers read .debug_frame: tables to unwind the stack would be a
# twentieth of the program.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG -fno-asynchronous-unwind-tables")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

add_library(ifd_warnings INTERFACE)
# 64-bit file offsets also on 32-bit systems: without them folders and files can be unreadable
# there.
target_compile_definitions(ifd_warnings INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(ifd_warnings INTERFACE
    -Wall -Wextra -Wshadow -Wvla
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes -Wconversion>
    $<$<BOOL:${IFD_WERROR}>:-Werror>
    # One source must give one result on every CPU: the compiler may not fuse a*b+c on its own.
    -ffp-contract=off -fno-strict-aliasing
    -fstack-protector-strong)

# For shared objects. A sanitizer's functions are those of the program that loads them.
if(NOT IFD_SANITIZE)
    set(IFD_NO_UNDEFINED -Wl,--no-undefined)
endif()

# ifd_library(NAME SOURCES … [LINK …]): a static library with the project's warnings; all includes
# are relative to the top of the tree, public headers are reached as <inferd/x.h> or "inferd/x.h".
function(ifd_library name)
    cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
    add_library(${name} STATIC ${arg_SOURCES})
    target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR}
                                              ${CMAKE_SOURCE_DIR}/engine/include)
    target_link_libraries(${name} PUBLIC ${arg_LINK} PRIVATE ifd_warnings)
endfunction()

# ifd_plugin(NAME SOURCES … [LINK …]): a backend as a shared object that exports ifd_backend_query
# only, where the program of this build looks for plugins.
function(ifd_plugin name)
    cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
    add_library(${name} MODULE ${arg_SOURCES})
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}
                                               ${CMAKE_SOURCE_DIR}/engine/include)
    target_link_libraries(${name} PRIVATE ifd_warnings ${arg_LINK})
    target_link_options(${name} PRIVATE ${IFD_NO_UNDEFINED})
    set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY
                                             ${CMAKE_BINARY_DIR}/lib/inferd/backends)
endfunction()

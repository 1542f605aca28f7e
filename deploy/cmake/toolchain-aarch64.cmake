# Cross build for aarch64 with Debian's compilers; tests run under user-mode QEMU. Without the
# server, whose libraries are installed for this machine only: cmake --toolchain
# deploy/cmake/toolchain-aarch64.cmake -DIFD_SERVER=OFF …
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# IFD_SYSROOT: a folder with unpacked Debian packages of that processor (tests/run.sh makes one).
# Without it only what Debian's multiarch has installed is found, never the libraries of this
# machine.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES IFD_SYSROOT)
set(ENV{PKG_CONFIG_LIBDIR} ${IFD_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${IFD_SYSROOT}")
if(IFD_SYSROOT)
    list(APPEND CMAKE_PREFIX_PATH ${IFD_SYSROOT}/usr)
    set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${IFD_SYSROOT})
    # headers that differ by processor
    set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES
        ${IFD_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
    foreach(lib usr/lib lib)
        string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT
            " -Wl,-rpath-link,${IFD_SYSROOT}/${lib}/${CMAKE_LIBRARY_ARCHITECTURE}")
    endforeach()
endif()

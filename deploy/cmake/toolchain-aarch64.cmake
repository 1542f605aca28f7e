# Cross build for aarch64 with Debian's compilers; tests run under user-mode QEMU. The engine alone, since the server's libraries
# are installed for this machine only: cmake --toolchain deploy/cmake/toolchain-aarch64.cmake -DIFD_SERVER=OFF …
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu) # Debian's multiarch: libraries of aarch64-linux-gnu lie in /usr/lib/aarch64-linux-gnu

# A Debian package of each component of Install.cmake; deploy/package.sh makes them through CPack.
set(version ${PROJECT_VERSION}-1)
set(maintainer "inferd maintainers <maintainers@inferd.invalid>")
set(debian ${CMAKE_SOURCE_DIR}/deploy/debian)

set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON) # files outside of the prefix: /etc
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGE_NAME inferd)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "inference server for TensorFlow Lite and ONNX models")
set(CPACK_PACKAGE_CONTACT ${maintainer})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^armv7")
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE armhf)
else()
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()

# Both logs of changes, compressed without the time of day. Their date is SOURCE_DATE_EPOCH.
set(ENV{LC_ALL} C)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${texts}/changelog.Debian "inferd (${version}) stable; urgency=medium

  * What changed is in changelog.gz.

 -- ${maintainer}  ${date}
")
file(COPY_FILE ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${texts}/changelog)
execute_process(COMMAND gzip -9nkf changelog changelog.Debian WORKING_DIRECTORY ${texts}
    COMMAND_ERROR_IS_FATAL ANY)

# ifd_package(COMPONENT PACKAGE SECTION DEPENDS DESCRIPTION); deploy/debian/PACKAGE/ has the files
# of its control part.
function(ifd_package component package section depends description)
    string(TOUPPER ${component} id)
    foreach(row "NAME ${package}" "SECTION ${section}" "DEPENDS ${depends}")
        string(REGEX MATCH "^[A-Z]+" name ${row})
        string(REGEX REPLACE "^[A-Z]+ " "" value ${row})
        set(CPACK_DEBIAN_${id}_PACKAGE_${name} ${value} PARENT_SCOPE)
    endforeach()
    set(CPACK_DEBIAN_${id}_DESCRIPTION ${description} PARENT_SCOPE)
    file(GLOB control ${debian}/${package}/*)
    set(CPACK_DEBIAN_${id}_PACKAGE_CONTROL_EXTRA ${control} PARENT_SCOPE)
    install(FILES ${texts}/changelog.gz ${texts}/changelog.Debian.gz ${debian}/copyright
        DESTINATION share/doc/${package} COMPONENT ${component})
    install(FILES ${debian}/lintian-overrides DESTINATION share/lintian/overrides
        RENAME ${package} COMPONENT ${component})
    set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
endfunction()

# What is needed is said here, because the tool that finds it out cannot do so for another
# processor; tests/deploy compares it with what that tool finds for this one.
set(client "libcurl4 (>= 7.16.2), libjansson4 (>= 2.14)")
ifd_package(inferd inferd net
    "libc6 (>= 2.35), ${client}, libjpeg62-turbo (>= 1:1.5.0), libmicrohttpd12 (>= 0.9.75-2), \
libnettle8, libspeexdsp1 (>= 1.2.1), libspng0 (>= 0.7.3), libuv1 (>= 1.4.2), \
libwebp7 (>= 1.2.4), zlib1g (>= 1:1.2.0), \
systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles"
    "Serves the models of a folder over HTTP in the dialect of the Open Inference
Protocol that Triton speaks, on its own kernels for x86-64 and Arm. With the
service, with inferctl, which asks a server, and with inferd-camera, which
sends it frames as cameras do.")
ifd_package(inferd-client libinferd-client0 libs "libc6 (>= 2.17), ${client}"
    "The library that asks inferd, or another server of the Open Inference
Protocol, over HTTP from programs in C.")
ifd_package(inferd-client-dev libinferd-client-dev libdevel
    "libinferd-client0 (= ${version}), libcurl4-openssl-dev | libcurl4-gnutls-dev, libjansson-dev"
    "Header, static library and pkg-config file of the library that asks inferd,
or another server of the Open Inference Protocol, from programs in C.")
if(TARGET gpuacc)
    ifd_package(inferd-gpuacc inferd-gpuacc net
        "libc6 (>= 2.34), inferd (= ${version}), ocl-icd-libopencl1 | libopencl1"
        "The backend GpuAcc, which computes models of inferd on OpenCL devices. Their
driver is a package of its own.")
endif()
include(CPack)

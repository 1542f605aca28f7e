# What `cmake --install` puts where, by component: inferd (program, client, service), and the C
# client's inferd-client (shared library) and inferd-client-dev (to compile with it), and the plugin
# inferd-gpuacc. The unit names the prefix: choose it when you configure, not when you install.
include(GNUInstallDirs)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME inferd)
set(texts ${CMAKE_BINARY_DIR}/texts)

# ifd_text(FILE TARGET FLAG DESTINATION …): what the program prints with FLAG, as a file.
function(ifd_text file target flag destination)
    add_custom_command(OUTPUT ${texts}/${file}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${texts}
        COMMAND ${target} ${flag} > ${texts}/${file}
        DEPENDS ${target} VERBATIM)
    set(made ${texts}/${file})
    if(destination MATCHES "/man/") # manual pages are compressed, without the time of day
        add_custom_command(OUTPUT ${texts}/${file}.gz
            COMMAND gzip -9nkf ${texts}/${file} DEPENDS ${texts}/${file} VERBATIM)
        set(made ${texts}/${file}.gz)
    endif()
    set_property(GLOBAL APPEND PROPERTY IFD_TEXTS ${made})
    install(FILES ${made} DESTINATION ${destination} ${ARGN})
endfunction()

set(bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
set(zsh ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
ifd_text(inferd.1 inferd --man ${CMAKE_INSTALL_DATADIR}/man/man1)
ifd_text(inferctl.1 inferctl --man ${CMAKE_INSTALL_DATADIR}/man/man1)
ifd_text(inferd-camera.1 inferd-camera --man ${CMAKE_INSTALL_DATADIR}/man/man1)
ifd_text(inferd.conf.5 inferd --man-conf ${CMAKE_INSTALL_DATADIR}/man/man5)
ifd_text(inferd.bash inferd --bash-completion ${bash} RENAME inferd)
ifd_text(inferctl.bash inferctl --bash-completion ${bash} RENAME inferctl)
ifd_text(_inferd inferd --zsh-completion ${zsh})
ifd_text(_inferctl inferctl --zsh-completion ${zsh})
get_property(made_texts GLOBAL PROPERTY IFD_TEXTS)
add_custom_target(texts ALL DEPENDS ${made_texts})

install(TARGETS inferd inferctl inferd-camera)
install(TARGETS ifd_client_shared
    LIBRARY COMPONENT inferd-client NAMELINK_COMPONENT inferd-client-dev)
install(TARGETS ifd_client ARCHIVE COMPONENT inferd-client-dev)
install(FILES ${CMAKE_SOURCE_DIR}/clients/c/inferd_client.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT inferd-client-dev)
configure_file(${CMAKE_SOURCE_DIR}/clients/c/inferd-client.pc.in ${texts}/inferd-client.pc @ONLY)
install(FILES ${texts}/inferd-client.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT inferd-client-dev)

if(TARGET gpuacc) # where the program looks by itself: who installs it wants it
    install(TARGETS gpuacc LIBRARY DESTINATION lib/inferd/backends COMPONENT inferd-gpuacc)
endif()

# The service. Its files name the places of the Debian package.
set(from ${CMAKE_SOURCE_DIR}/deploy/systemd)
file(READ ${from}/inferd.service unit)
string(REPLACE "/usr/bin/" "${CMAKE_INSTALL_FULL_BINDIR}/" unit "${unit}")
string(REPLACE "/etc/inferd/" "${CMAKE_INSTALL_FULL_SYSCONFDIR}/inferd/" unit "${unit}")
file(CONFIGURE OUTPUT ${texts}/inferd.service CONTENT "${unit}" @ONLY)
install(FILES ${texts}/inferd.service DESTINATION lib/systemd/system)
install(FILES ${from}/inferd.sysusers DESTINATION lib/sysusers.d RENAME inferd.conf)
install(FILES ${from}/inferd.tmpfiles DESTINATION lib/tmpfiles.d RENAME inferd.conf)
install(FILES ${from}/inferd.conf DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/inferd)
install(FILES ${from}/inferd.logrotate
    DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/logrotate.d RENAME inferd)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/models/digits
    DESTINATION ${CMAKE_INSTALL_DATADIR}/inferd/models)

# The documents, and the examples that they name, beside each other as in the sources.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_SOURCE_DIR}/SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
set(from ${CMAKE_SOURCE_DIR}/deploy)
install(FILES ${from}/README.md ${from}/Containerfile ${from}/compose.yaml
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/deploy)
install(DIRECTORY ${from}/grafana ${from}/k8s ${from}/prometheus ${from}/proxy ${from}/systemd
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/deploy)

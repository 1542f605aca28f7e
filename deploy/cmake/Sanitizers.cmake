# IFD_SANITIZE=address,undefined | thread | memory … builds every target with that sanitizer,
# failing on the first report.
if(IFD_SANITIZE)
    add_compile_options(-fsanitize=${IFD_SANITIZE} -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${IFD_SANITIZE})
    add_compile_definitions(IFD_SANITIZED=1)
endif()
# IFD_FUZZ makes libFuzzer see which code a fuzz target reaches.
if(IFD_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "IFD_FUZZ needs clang: "
                            "-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
    # Models have mutators that know their format: to note what numbers are compared with takes half
    # of the time there, for nothing.
    set(folder $<TARGET_PROPERTY:SOURCE_DIR>)
    foreach(root engine backends)
        set(is_below $<PATH:IS_PREFIX,${CMAKE_SOURCE_DIR}/${root},${folder}>)
        add_compile_options($<${is_below}:-fno-sanitize-coverage=trace-cmp>)
    endforeach()
endif()

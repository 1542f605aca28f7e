# IFD_SANITIZE=address,undefined | thread | memory … builds every target with that sanitizer, failing on the first report.
if(IFD_SANITIZE)
    add_compile_options(-fsanitize=${IFD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
    add_link_options(-fsanitize=${IFD_SANITIZE})
    add_compile_definitions(IFD_SANITIZED=1)
endif()

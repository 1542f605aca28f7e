# cmake -DIN=console.html -DOUT=console_page.c -P console.cmake: the page as bytes in C, with the
# policy that allows its one script and its one style by their SHA-256, in base64 as browsers want.
cmake_minimum_required(VERSION 3.20)

# The base64 of the SHA-256 of what stands between <tag> and </tag> of the page.
function(hash_of tag ret)
    string(FIND "${page}" "<${tag}>" begin)
    string(FIND "${page}" "</${tag}>" end)
    string(LENGTH "<${tag}>" length)
    math(EXPR begin "${begin} + ${length}")
    math(EXPR length "${end} - ${begin}")
    string(SUBSTRING "${page}" ${begin} ${length} text)
    string(SHA256 hex "${text}")
    set(letters "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    set(base64 "")
    foreach(at RANGE 0 60 6) # 32 bytes and one of zeros: 11 times 3
        string(SUBSTRING "${hex}00" ${at} 6 three)
        foreach(shift 18 12 6 0)
            math(EXPR letter "(0x${three} >> ${shift}) & 63")
            string(SUBSTRING "${letters}" ${letter} 1 letter)
            string(APPEND base64 "${letter}")
        endforeach()
    endforeach()
    string(SUBSTRING "${base64}" 0 43 base64) # the last letter is that byte
    set(${ret} "'sha256-${base64}='" PARENT_SCOPE)
endfunction()

file(READ ${IN} page)
hash_of(script script)
hash_of(style style)
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "#include \"api/http/console.h\"\n"
    "static const unsigned char page[] = {${bytes}};\n"
    "const struct ifd_bytes ifd_console_page = {page, sizeof(page)};\n"
    "const char ifd_console_policy[] = \"default-src 'none'; script-src ${script}; "
    "style-src ${style}; connect-src 'self'; img-src blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'\";\n")

# cmake -DNAME=conv -DIN=conv.cl -DOUT=conv.c -P embed.cmake: a kernel file as text in C.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "#include \"backends/gpuacc/program.h\"\n"
    "static const char text[] = {${bytes}0};\n"
    "extern const struct ifd_gpu_file ifd_gpu_file_${NAME};\n"
    "const struct ifd_gpu_file ifd_gpu_file_${NAME} = {\"${NAME}.cl\", text};\n")

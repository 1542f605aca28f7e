#!/usr/bin/env python3
"""Who may include whom, checked against every #include of the tree; CONTRIBUTING.md shows the same
table."""
import re

from tree import ROOT, finish, relative, sources, stale

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)

ROOMS = ("engine/", "backends/", "api/", "server/", "clients/", "tests/")
PUBLIC = "engine/include"
BASE = "engine/base"
TENSOR = "engine/tensor"
# folder → what of ours it may include besides itself and the public headers. The longest matching
# folder counts.
LAYERS = {
    "engine/include": [],
    "engine/base": [],
    "engine/tensor": [BASE],
    "engine/ir": [BASE, "engine/ops/registry"],
    "engine/ops": [BASE, TENSOR, "engine/ir"],
    "engine/build": [BASE, "engine/ir"],
    "engine/parse": [BASE, "engine/tensor/half.h", "engine/build", "engine/ir", "engine/ops"],
    "engine/opt": [BASE, "engine/ir", "engine/ops"],
    "engine/backend": [BASE],
    "engine/plan": [BASE, "engine/ir", "engine/backend"],
    "engine/exec": [BASE, "engine/plan", "engine/backend"],
    "engine/tools": [BASE],
    "engine/cache": [BASE, "engine/ir"],
    "engine/engine": [BASE, "engine/backend", "engine/cache"],
    "engine/model": [BASE, "engine/engine", "engine/cache", "engine/exec", "engine/ir",
                     "engine/opt", "engine/parse", "engine/plan"],
    "backends/null": [],
    "backends/cpuref": [BASE, TENSOR, "backends/lowering/work.h"],
    "backends/lowering": [BASE, TENSOR],
    "backends/cpuacc": [BASE, TENSOR, "backends/lowering"],
    "backends/gpuacc": [BASE, TENSOR, "backends/lowering"],
    "backends/cpuacc/kernels": [
        "engine/tensor/fixed.h",
        "engine/tensor/fixed16.h",
        "engine/tensor/half.h",
    ],
    "backends": [],
    "api/core": [BASE, "server/model"],
    "api/json": [BASE],
    "api/http": [BASE, "api/core", "api/json", "server/model"],
    "server/net": [BASE, "api/http", "server/obs"],
    "server/media": [BASE, "server/model"],
    "server/sched": [BASE, "server/obs"],
    "server/model": [BASE],
    "server/objects": [BASE, "engine/tensor/half.h", "server/model"],
    "server/repo": [BASE, "server/hash", "server/model", "server/obs"],
    "server/hash": [BASE],
    "server/auth": [BASE, "api/core/guard.h", "server/hash"],
    "server/obs": [BASE, "api/core/outcome.h", "server/model"],
    "server/config": [BASE],
    "server/serve": [BASE, "api", "server/config", "server/media", "server/model", "server/net",
                     "server/objects", "server/obs", "server/repo", "server/sched"],
    "server/ops": [BASE, "api/http/guard.h", "server/auth", "server/config", "server/model",
                   "server/net", "server/obs", "server/repo", "server/sched", "server/serve"],
    "server": [BASE, "api", "server", "backends/builtin.h", "engine/tools"],
    "clients": [],
}
# The public headers that a folder may see; the others may see all of them.
PUBLIC_FOR = {
    "engine/base": ["inferd/types.h", "inferd/status.h", "inferd/alloc.h", "inferd/machine.h"],
}
# Public headers that only some may see.
CONFINED_OURS = {
    "inferd/engine.h": ["engine", "server", "tests"],
    "inferd/backend.h": ["engine", "backends", "tests"],
}
# Libraries and system headers, each known in one place.
CONFINED = {
    "microhttpd.h": ["server/net"],
    "uv.h": ["server/net"],
    "jansson.h": ["clients", "tests"],
    "flatbuffers/": ["engine/parse/tflite", "tests/fuzz/mutate"],
    "dlfcn.h": ["backends/gpuacc/cl.c", "engine/backend/loader.c", "tests"],
    "CL/": ["backends/gpuacc/cl.h"],
    "pthread.h": ["engine/base", "clients", "tests"],
    "immintrin.h": ["backends/cpuacc/kernels", "api/json/number_avx2.c", "api/json/number_avx512.c",
                    "api/json/number_print_avx512.c",
                    "tests/kernels"],
    "arm_neon.h": ["backends/cpuacc/kernels", "api/json/number_neon.c", "tests/kernels"],
    "jpeglib.h": ["server/media", "tests"],
    "spng.h": ["server/media", "tests"],
    "speex/": ["server/media"],
    "webp/": ["server/media", "tests"],
    "nettle/": ["server/hash"],
    "curl/": ["clients", "tests"],
    "zlib.h": ["api/http/encoding.c", "server/media", "engine/parse/tflite", "tests"],
}


def inside(path, places):
    return any(path == place or path.startswith(place.rstrip("/") + "/") or
               (not place.endswith(".h") and path.startswith(place + ".")) for place in places)


def layer_of(path):
    return max((layer for layer in LAYERS if inside(path, [layer])), key=len, default=None)


def our_path(name):
    return f"{PUBLIC}/{name}" if name.startswith("inferd/") else name




def row(layer):
    """The row of CONTRIBUTING.md."""
    allowed = ", ".join(f"`{place}`" for place in LAYERS[layer]) or "nothing of ours"
    if layer in PUBLIC_FOR:
        headers = ", ".join(f"`{header.removeprefix('inferd/')}`" for header in PUBLIC_FOR[layer])
        allowed += f"; of the public headers {headers}"
    return f"| `{layer}` | {allowed} |"


named = [place for layer, allowed in LAYERS.items() for place in (layer, *allowed)]
named += [place for table in (CONFINED_OURS, CONFINED)
          for places in table.values() for place in places]
named += [f"{PUBLIC}/{header}" for headers in PUBLIC_FOR.values() for header in headers]
problems, checked = stale(named), 0
text = (ROOT / "CONTRIBUTING.md").read_text().split("## Who may include whom\n")[1]
text = text.split("\n## ")[0]
shown = {line for line in text.split("\n") if line.startswith("| `")} - {"| `tests` | everything |"}
wanted = {row(layer) for layer in LAYERS}
problems += [f"CONTRIBUTING.md lacks the row {line}" for line in sorted(wanted - shown)]
problems += [f"CONTRIBUTING.md has the row {line}, which is not this lint's"
             for line in sorted(shown - wanted)]
for source in sources():
    path = relative(source)
    layer = layer_of(path)
    if layer is None and not path.startswith("tests/"):
        problems.append(f"{path}: no row of the table of layers says what it may include")
    for quote, name in INCLUDE.findall(source.read_text()):
        checked += 1
        if name.startswith("../") or "/../" in name:
            problems.append(f"{path}: includes {name}: paths start at the top of the tree")
        folder = name.rpartition("/")[0]
        if name.endswith("_impl.h") and folder and not inside(path, [folder, "tests"]):
            problems.append(f"{path}: {name} is for the files of its own folder")
        for header, places in {**CONFINED_OURS, **CONFINED}.items():
            is_named = name.startswith(header) if header.endswith("/") else name == header
            if is_named and not inside(path, places):
                problems.append(f"{path}: {name} is confined to {', '.join(places)}")
        if name.startswith("inferd/") and name not in PUBLIC_FOR.get(layer, [name]):
            problems.append(f"{path}: {layer} may not include {name}, but "
                            f"{', '.join(PUBLIC_FOR[layer])}")
        target = our_path(name)
        if layer is None or not target.startswith(ROOMS):
            continue
        allowed = [layer, PUBLIC] + LAYERS[layer]
        if layer in ("clients",):
            allowed.remove(PUBLIC)
        if not inside(target, allowed) and target not in allowed:
            problems.append(f"{path}: {layer} may not include {target}")
finish(problems, checked)

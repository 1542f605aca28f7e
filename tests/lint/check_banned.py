#!/usr/bin/env python3
"""Functions and habits that the house does without, and the one place that may use each."""
import re

from tree import finish, relative, sources, stale

CALL = r"(?<![\w.>]){}\s*\("
# pattern, message, places where it is allowed
RULES = [
    (CALL.format("(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atof|sscanf|gets|alloca)"),
     "banned function", []),
    (CALL.format("(malloc|calloc|realloc|free|posix_memalign|aligned_alloc|strdup|strndup)"),
     "memory goes through struct ifd_alloc", ["engine/base/alloc.c", "tests/", "clients/"]),
    (CALL.format("(abort|exit|_exit|quick_exit)"), "libraries return errors",
     ["tests/", "clients/c/cli", "server/main.c"]),
    (CALL.format("(getenv|secure_getenv)"), "settings are read in one place",
     ["server/config/config.c", "tests/", "clients/c/cli"]),
    (CALL.format("(sleep|usleep|nanosleep)"), "nobody sleeps",
     ["backends/gpuacc/await.c", "tests/"]),  # OpenCL has no wait that ends
    (r"\bCLOCK_REALTIME\b|" + CALL.format("(time|gettimeofday|ftime)"),
     "timers and deadlines use the monotonic clock",
     ["server/obs/", "server/serve/counts.c", "engine/cache/room.c", "tests/"]),
    (CALL.format("(printf|puts|putchar)"), "libraries do not print",
     ["server/main.c", "server/init.c", "server/config", "engine/tools/", "tests/",
      "clients/c/cli", "clients/camera/camera.c", "clients/camera/options.c"]),
    (CALL.format("memmove"), "array surgery is one tested helper",
     ["engine/base/", "engine/ops/", "backends/", "tests/", "api/", "server/net"]),
    # a macro that defines whole functions hides nothing
    (r"^\s*#\s*define\b(?!(?:.*\\\n){0,2}.*\bstatic\b)(?:.*\\\n)*.*\b(goto|return)\b",
     "control flow hidden in a macro", ["tests/"]),
    (CALL.format("ifd_log_(error|warn|info)"), "libraries do not log above debug",
     ["server/", "engine/base/log", "tests/"]),
]
# pattern, message, places where it is refused
SECRET = ["server/auth/", "server/hash/", "api/http/guard", "api/core/guard"]
REFUSED = [
    (CALL.format("(memcmp|bcmp|strcmp|strncmp|strcasecmp|strncasecmp|memmem|strstr)"),
     "secrets are compared by ifd_sha256_is_same, which takes the same time for all", SECRET),
    (CALL.format(r"ifd_str_\w+") + r"\s*(text|rest|authorization|token|got|\w+(\.|->)sum)\s*,\s*\"",
     "a token is not compared as text: its sum is, by ifd_sha256_is_same", SECRET),
    (r"\bsum\s*\[[^]]*\]\s*[!=]=", "sums are compared by ifd_sha256_is_same, not byte by byte",
     SECRET),
]
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)

problems, checked = stale(place for _, _, places in RULES for place in places), 0
for source in sources():
    path = relative(source)
    # Comments and strings may talk about anything; keep the line numbers.
    text = COMMENT.sub(lambda m: '""' + "\n" * m.group().count("\n"), source.read_text())
    checked += 1
    rules = [rule for rule in RULES if not path.startswith(tuple(rule[2]))]
    rules += [rule for rule in REFUSED if path.startswith(tuple(rule[2]))]
    for pattern, message, _ in rules:
        for match in re.finditer(pattern, text, re.M):
            line = text.count("\n", 0, match.start()) + 1
            problems.append(f"{path}:{line}: {match.group().strip().splitlines()[0]} — {message}")
finish(problems, checked)

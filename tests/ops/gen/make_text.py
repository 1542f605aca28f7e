"""Writes the golden files beside this folder of operators on texts.

    python tests/ops/gen/make_text.py [operator …]

ONNX Runtime changes cases by the locale en_US.UTF-8, which must be there.
"""

import sys

import numpy as np

import ort
from make_ops import File


class Tensor:
    """As litert.Tensor, of texts, too."""

    def __init__(self, dtype, data, constant=False):
        self.dtype = dtype
        self.data = np.asarray(data)
        self.shape = list(self.data.shape)
        self.scale = None
        self.constant = constant


def texts(data, constant=False):
    return Tensor("str", np.asarray(data, object), constant)


def list_of(values):
    return texts(values, True)


WORDS = ["", "a", "The quick, brown fox", "  two  blanks ", "ab,cd,,ef", "HÉLLO wörld ÿ", "ŁÓDŹ",
         "ΑΒΓ Σ", "Привет МИР", "12.5 -3 x1_y", "日本語 text", "straße İı", "Ạ ạ Ｆｕｌｌ"]


def text_case():
    file = File("text_case")
    file.source = ort.SOURCE + " StringNormalizer"
    x = np.array(WORDS, object)
    for upper in (False, True):
        y, = ort.run("StringNormalizer", [x], 1,
                     case_change_action="UPPER" if upper else "LOWER", locale="en_US.UTF-8")
        file.add("upper" if upper else "lower", [texts(x)], [texts(y)], {"is_upper": upper})
    file.write()


def text_join():
    file = File("text_join")
    file.source = ort.SOURCE + " StringConcat"
    for a, b in ((WORDS, WORDS[::-1]), ([["a"], ["é"]], ["x", "", "yz"]), ("s", ["t", "u"])):
        a, b = np.array(a, object), np.array(b, object)
        y, = ort.run("StringConcat", [a, b], 1, opset=20)
        file.add(f"{list(a.shape)} {list(b.shape)}", [texts(a), texts(b)], [texts(y)])
    file.write()


def text_cast():
    file = File("text_cast")
    file.source = ort.SOURCE + " Cast"
    real = np.array([0, -0.0, 1, -2.5, 0.1, 1e-7, 3.4e38, 123456.789, 1e6, 1e8, 1e9, np.nan,
                     np.inf, -np.inf, 1 / 3], np.float32)
    y, = ort.run("Cast", [real], 1, to=8)
    file.add("f32 to text", [Tensor("f32", real)], [texts(y)])
    whole = np.array([[0, -1], [2**63 - 1, -2**63]], np.int64)
    y, = ort.run("Cast", [whole], 1, to=8)
    file.add("s64 to text", [Tensor("s64", whole)], [texts(y)])
    x = np.array(["0", "-1.5", "1e5", "+3", ".25", "7.", "NaN", "nan", "INF", "-inf", "1E-3",
                  "0.1", "123456789"], object)
    y, = ort.run("Cast", [x], 1, to=1)
    file.add("text to f32", [texts(x)], [Tensor("f32", y)])
    x = np.array(["0", "-17", "+8", "9223372036854775807", "-9223372036854775808"], object)
    y, = ort.run("Cast", [x], 1, to=7)
    file.add("text to s64", [texts(x)], [Tensor("s64", y)])
    file.write()


PATTERNS = ["", "a+", r"[a-z]*", r".*fox", r"(ab|a)(,cd)*.*", r"\w+", r"[^ ]+ [^ ]+",
            r"(?i)héllo.*", r"\d+\.\d{1,2} .*", r"[[:alpha:]]+", r"a{0,3}",
            r"^a$", r"(?:\s|two|blanks)*", r"\S+", r".{3,5}", r"a?", r"((a)|(b))*", r"\x61",
            r"[\w,]+", r"\W*", r"(?s).*", r".*\bquick\b.*",
            r"[日-本]*語 .*", r"[-a]*", r"[]a]*", "a|", r"(a{2}){2}|.*x1_y"]


def text_match():
    file = File("text_match")
    file.source = ort.SOURCE + " RegexFullMatch"
    x = np.array(WORDS + ["aaaa", "a\nb", "]a-"], object)
    for pattern in PATTERNS:
        y, = ort.run("RegexFullMatch", [x], 1, opset=20, pattern=pattern)
        file.add(pattern, [texts(x), list_of([pattern])], [Tensor("bool", y)])
    file.write()


TOKENS = [dict(tokenexp=p) for p in (r"[a-zA-Z0-9_]+", r"a|ab", r"\w\w+", r".", r"[^ ,]+", r"x*",
                                     r"(?i)[A-Z]+")]
SEPARATORS = [dict(separators=s) for s in ([" "], [","], [" ", ","], ["[ ,]+", "o"], [""])]
PARTS = {"tokenexp": 0, "separators": 1}


def tokenized():
    """x, patterns, attributes, result."""
    x = np.array([WORDS, WORDS[::-1]], object)
    for given in TOKENS + SEPARATORS:
        for mark in (0, 1):
            is_char = list(given.values())[0] in (".", [""])
            for least in (1,) if is_char else (1, 2):
                y, = ort.run("Tokenizer", [x], 1, domain="com.microsoft", mark=mark,
                             pad_value="#", mincharnum=least, **given)
                (kind, pattern), = given.items()
                pattern = [pattern] if kind == "tokenexp" else pattern
                parts = 2 if pattern == [""] else PARTS[kind]
                yield x, None if parts == 2 else pattern, {"parts": parts, "least": least,
                                                            "marks": bool(mark)}, y


def split():
    x = np.array(WORDS + ["a,b, c", " x  y z"], object)
    for by in ("", ",", " ", ", ", "日"):
        for most in (None, 0, 1, 2):
            attributes = {} if most is None else {"maxsplit": most}
            y, n = ort.run("StringSplit", [x], 2, opset=20, delimiter=by, **attributes)
            yield (x, [by] if by else None,
                   {"parts": 4 if by else 3, "splits": -1 if most is None else most}, y, n)


def text_split():
    file = File("text_split")
    file.source = ort.SOURCE + " Tokenizer, StringSplit"
    for x, pattern, attrs, y in tokenized():
        file.add(f"{pattern} {attrs}", [texts(x), pattern and list_of(pattern), list_of(["#"])],
                 [texts(y)], {**attrs, "room": y.shape[-1]})
    for x, pattern, attrs, y, _ in split():
        file.add(f"{pattern} {attrs}", [texts(x), pattern and list_of(pattern), list_of([""])],
                 [texts(y)], {**attrs, "room": y.shape[-1]})
    file.write()


def text_count():
    file = File("text_count")
    file.source = ort.SOURCE + " StringSplit"
    for x, pattern, attrs, _, n in split():
        file.add(f"{pattern} {attrs}", [texts(x), pattern and list_of(pattern)],
                 [Tensor("s64", n)], attrs)
    file.write()


def ngrams():
    file = File("ngrams")
    file.source = ort.SOURCE + " TfIdfVectorizer"
    pools = {"s64": ([1, 2, 3, 5], [(1, 2), (2, 2), (5, 1)], [(1, 2, 2), (2, 3, 5)])}
    pools["str"] = tuple([tuple("abcdef"[i] for i in g) if isinstance(g, tuple) else "abcdef"[g]
                          for g in grams] for grams in pools["s64"])
    for dtype, pool in pools.items():
        flat = [x for grams in pool for g in grams for x in (g if isinstance(g, tuple) else (g,))]
        count = sum(map(len, pool))
        x = file.rng.integers(1, 6, (4, 9))
        x = x if dtype == "s64" else np.array([["abcdef"[i] for i in row] for row in x], object)
        weights = np.round(file.rng.uniform(0.5, 2, count), 2).astype(np.float32)
        columns = file.rng.permutation(count + 1)[:count]
        for mode in ("TF", "IDF", "TFIDF"):
            for low, high, skips in ((1, 1, 0), (1, 3, 0), (2, 3, 2), (3, 3, 1)):
                y, = ort.run("TfIdfVectorizer", [x], 1, mode=mode, min_gram_length=low,
                             max_gram_length=high, max_skip_count=skips,
                             ngram_counts=[0, 4, 10], ngram_indexes=columns.tolist(),
                             weights=weights.tolist(),
                             **{"pool_strings" if dtype == "str" else "pool_int64s": flat})
                used = np.ones(count, np.float32) if mode == "TF" else weights
                grams = list_of(flat) if dtype == "str" else Tensor("s64", flat, True)
                file.add(f"{dtype} {mode} {low}-{high} skips {skips}",
                         [texts(x) if dtype == "str" else Tensor("s64", x), grams,
                          Tensor("s64", [0, 4, 10], True), Tensor("s64", columns, True),
                          Tensor("f32", used, True)], [Tensor("f32", y)],
                         {"width": int(columns.max()) + 1, "min_length": low, "max_length": high,
                          "skips": skips, "is_flag": mode == "IDF"})
    file.write()


def hash():
    file = File("hash")
    file.source = ort.SOURCE + " MurmurHash3"
    words = np.array(["", "a", "ab", "abc", "abcd", "Grüße, 世界", "x" * 33], object)
    for seed in (0, 1, -7):
        for is_positive, to in ((0, "s32"), (1, "u32")):
            file.add(f"texts, seed {seed}, {to}", [texts(words)],
                     [Tensor(to, hashed(words, seed, is_positive))],
                     {"seed": seed})
        x = file.rng.integers(-2**31, 2**31, (2, 3)).astype(np.int32)
        file.add(f"numbers, seed {seed}", [Tensor("s32", x)],
                 [Tensor("u32", hashed(x, seed, 1))], {"seed": seed})
    x = np.array([0, 1, 2**32 - 1], np.uint32)
    file.add("u32", [Tensor("u32", x)], [Tensor("s32", hashed(x, 5, 0))], {"seed": 5})
    file.write()


def hashed(x, seed, is_positive):
    return ort.run("MurmurHash3", [x], 1, domain="com.microsoft", seed=seed,
                   positive=is_positive)[0]


ALL = {f.__name__: f for f in (text_case, text_join, text_cast, text_match, text_count, text_split,
                                  ngrams, hash)}

if __name__ == "__main__":
    for op in sys.argv[1:] or ALL:
        ALL[op]()

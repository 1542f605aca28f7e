"""Random cases, as in onnx_cases.py, of the operators of com.microsoft that language models with
experts, gates and states are written with."""
import numpy as np
import onnx

from onnx_cases import F, array, pick, shape_of
from onnx_microsoft import ms
from onnx_rare import maybe, whole


# ---- experts ----


def routed(rng):
    """Tokens, scores of the experts, attributes; no two scores are equal."""
    tokens, experts = whole(rng, 1, 5), whole(rng, 1, 6)
    attrs = {"k": whole(rng, 1, experts), "normalize_routing_weights": whole(rng, 0, 1),
             "activation_type": pick(rng, "relu", "gelu", "silu", "swiglu", "identity")}
    if attrs["activation_type"] == "swiglu":
        attrs.update(swiglu_fusion=1, activation_alpha=float(F(rng.uniform(0.5, 2))),
                     activation_beta=float(F(rng.uniform(0, 1))))
        if rng.integers(2):
            attrs["swiglu_limit"] = float(F(rng.uniform(0.3, 2)))
    scores = rng.permuted(np.linspace(-1, 1, tokens * experts)).reshape(tokens, experts)
    return tokens, experts, attrs, scores.astype(F)


def flat_or_deep(rng, x):
    """Tokens with or without a dimension of samples."""
    return x if rng.integers(2) else x[:, None] if rng.integers(2) else x[None]


def moe(rng):
    tokens, experts, attrs, scores = routed(rng)
    width, inner = 4 * whole(rng, 1, 4), 4 * whole(rng, 1, 4)
    fused = inner * (2 if "swiglu_fusion" in attrs else 1)
    inputs = [flat_or_deep(rng, array(rng, (tokens, width))), scores,
              array(rng, (experts, fused, width)), maybe(rng, array(rng, (experts, fused))),
              array(rng, (experts, width, inner)), maybe(rng, array(rng, (experts, width)))]
    return ms("MoE", inputs, attrs, pick(rng, set(), {2, 3, 4, 5}))


def packed(numbers, bits):
    """The last dimension, the lowest bits first."""
    each = 8 // bits
    numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % each)])
    parts = numbers.reshape(*numbers.shape[:-1], -1, each).astype(np.uint8)
    return np.bitwise_or.reduce(parts << (bits * np.arange(each, dtype=np.uint8)), -1)


def expert_weights(rng, experts, rows, columns, bits, block):
    """Packed numbers, scales, zero points."""
    blocks = columns // block if block else 1
    zeros = rng.integers(0, 1 << bits, (experts, rows, blocks))
    scales = array(rng, zeros.shape, F, 0.002, 0.1 / bits)
    return (packed(rng.integers(0, 1 << bits, (experts, rows, columns)), bits),
            scales if block else scales[..., 0], packed(zeros if block else zeros[..., 0], bits))


def q_moe(rng):
    tokens, experts, attrs, scores = routed(rng)
    width, inner = 32 * whole(rng, 1, 2), 32 * whole(rng, 1, 2)
    bits, block = pick(rng, 2, 4, 8), pick(rng, 0, 16, 32)
    fused = inner * (2 if "swiglu_fusion" in attrs else 1)
    attrs["expert_weight_bits"] = bits
    if block:
        attrs["block_size"] = block
    first = expert_weights(rng, experts, fused, width, bits, block)
    second = expert_weights(rng, experts, width, inner, bits, block)
    zeros = (first[2], second[2]) if rng.integers(2) else (None, None)
    shares = maybe(rng, array(rng, scores.shape, F, 0.1, 1))
    inputs = [flat_or_deep(rng, array(rng, (tokens, width))), scores, *first[:2],
              maybe(rng, array(rng, (experts, fused))), *second[:2],
              maybe(rng, array(rng, (experts, width))), None, None, None, *zeros, None, shares]
    return with_made_weights(ms("QMoE", inputs, attrs, set(range(2, 13))))


def with_made_weights(case):
    """Weights that a node makes: ONNX Runtime rounds activations to 8 bits before constant weights
    of 8 bits in blocks, inferd does not."""
    names = ["" if x is None else f"in{i}" for i, x in enumerate(case.inputs)]
    case.nodes = []
    for i in (2, 5):
        case.nodes.append(onnx.helper.make_node("Identity", [names[i]], [f"made{i}"]))
        names[i] = f"made{i}"
    case.nodes.append(onnx.helper.make_node(case.op, names, ["out0"], domain=case.domain,
                                            **case.attrs))
    return case


# ---- gates, norms, streams ----


def scaled_silu(rng):
    scale = maybe(rng, np.array(rng.uniform(0.3, 2), F))
    return ms("ScaledSiLU", [array(rng, shape_of(rng)), scale],
              {"alpha": float(F(rng.uniform(0.3, 2)))}, pick(rng, set(), {1}))


def gated_add(rng):
    shape = shape_of(rng)
    return ms("GatedAdd", [array(rng, shape), array(rng, shape), array(rng, shape[:-1] + (1,))])


def gated_rms_norm(rng):
    lead, heads, width = shape_of(rng, whole(rng, 1, 3)), whole(rng, 1, 4), whole(rng, 1, 9)
    shape = lead + (heads * width,)
    return ms("GatedRMSNorm", [array(rng, shape), array(rng, (width,)), array(rng, shape)],
              {"activation": pick(rng, "silu", "swish", "sigmoid"), "epsilon": 1e-3},
              pick(rng, set(), {1}))


def streams_of(rng, lead, count, width):
    """Apart, or in a row, and the attribute that says so."""
    if rng.integers(2):
        return array(rng, lead + (count, width)), {}
    return array(rng, lead + (count * width,)), {"num_branches": count}


def branchwise_rms_norm(rng):
    lead, count, width = shape_of(rng, whole(rng, 1, 2)), whole(rng, 1, 4), whole(rng, 1, 9)
    x, attrs = streams_of(rng, lead, count, width)
    scale = maybe(rng, array(rng, pick(rng, (count * width,), (count, width), (width,))))
    return ms("BranchwiseRMSNorm", [x, scale], {"epsilon": 1e-3, **attrs}, pick(rng, set(), {1}))


def linear_attention_gate(rng):
    shape = shape_of(rng, 3)
    has_rate = bool(rng.integers(2))
    return ms("LinearAttentionGate",
              [array(rng, shape), array(rng, shape[-1:]), array(rng, shape[-1:]),
               array(rng, shape) if has_rate else None], {}, pick(rng, set(), {1, 2}),
              2 if has_rate else 1)


def engram_gate(rng):
    lead, count, width = shape_of(rng, 2), whole(rng, 1, 4), whole(rng, 1, 9)
    scales = [array(rng, (count, width)) for _ in range(3)]
    has_norm = bool(rng.integers(2))
    return ms("EngramGate",
              [array(rng, lead + (count, width)), array(rng, lead + (count, width)),
               array(rng, lead + (width,)), *scales[:3 if has_norm else 2]], {"epsilon": 1e-3},
              pick(rng, set(), {3, 4, 5}), 2 if has_norm else 1)


def pre_mix(rng):
    lead, count, width = shape_of(rng, whole(rng, 1, 2)), whole(rng, 1, 4), whole(rng, 2, 9)
    x, attrs = streams_of(rng, lead, count, width)
    last = [(count,), (count, 1), (count, width)] + ([(count * width,)] if attrs else [])
    return ms("HyperConnectionPreMix", [x, array(rng, lead + pick(rng, *last))],
              {"reduction_scale": float(F(rng.uniform(0.3, 2))), **attrs})


def post_mix(rng):
    lead, count, width = shape_of(rng, whole(rng, 1, 2)), whole(rng, 1, 4), whole(rng, 2, 9)
    x, attrs = streams_of(rng, lead, count, width)
    last = pick(rng, (count,), (count, 1), (count, width))
    return ms("HyperConnectionPostMix",
              [x, array(rng, lead + (width,)), array(rng, lead + last),
               maybe(rng, array(rng, lead + (count, count)))], attrs)


# ---- choices ----


def group_router(rng):
    lead, groups, size = shape_of(rng, whole(rng, 1, 2)), whole(rng, 1, 4), whole(rng, 1, 5)
    kept = whole(rng, 1, groups)
    scores = rng.permuted(np.linspace(-2, 2, int(np.prod(lead)) * groups * size))
    return ms("MoEGroupRouter", [scores.reshape(lead + (groups * size,)).astype(F),
                                 array(rng, (groups * size,), F, -0.5, 0.5)],
              {"n_group": groups, "topk_group": kept, "group_topk": whole(rng, 1, 3),
               "top_k": whole(rng, 1, kept * size)})


def ngram_repeat_block(rng):
    batch, steps, words = whole(rng, 1, 3), whole(rng, 1, 20), whole(rng, 2, 6)
    return ms("NGramRepeatBlock",
              [rng.integers(0, words, (batch, steps)), array(rng, (batch, words))],
              {"ngram_size": whole(rng, 1, 4)})


# ---- attention ----


def mixed_rotary(rng):
    """Places in time, height and width; each turns a part of a head's numbers."""
    batch, heads, steps, half = whole(rng, 1, 2), whole(rng, 1, 3), whole(rng, 1, 5), \
        whole(rng, 1, 8)
    longest, width, is_flat = steps + 3, 2 * half, bool(rng.integers(2))
    second, third = whole(rng, 0, half // 3), whole(rng, 0, half // 3)
    attrs = {"mrope_section": [half - second - third, second, third],
             "mrope_layout": whole(rng, 0, 1), "interleaved": whole(rng, 0, 1)}
    if is_flat or rng.integers(2):
        attrs["num_heads"] = heads
    if "num_heads" in attrs and rng.integers(2):
        width += 2 * whole(rng, 1, 3)
        attrs["rotary_embedding_dim"] = 2 * half
    x = array(rng, (batch, steps, heads * width) if is_flat else (batch, heads, steps, width))
    return ms("MRotaryEmbedding",
              [x, rng.integers(0, longest, (3, batch, steps)), array(rng, (longest, half)),
               array(rng, (longest, half))], attrs, pick(rng, set(), {2, 3}))


def gated_delta_net(rng):
    """Tokens in a row, or samples of them; each head of queries and keys serves some of values."""
    batch, steps, few, share = whole(rng, 1, 2), whole(rng, 1, 4), whole(rng, 1, 2), \
        whole(rng, 1, 3)
    width, out, rule = whole(rng, 1, 8), whole(rng, 1, 8), \
        pick(rng, "linear", "gated", "delta", "gated_delta")
    heads, is_wide = few * share, bool(rng.integers(2))
    lead = (batch * steps,) if rng.integers(2) else (batch, steps)
    attrs = {"update_rule": rule, "qk_l2_norm": whole(rng, 0, 1)}
    decay = rate = logs = bias = None
    if "gated" in rule:
        decay = array(rng, lead + ((heads, width) if is_wide else (heads,)), F, -2, 0)
        attrs["gate_activation"] = pick(rng, "none", "softplus", "qwen", "sigmoid", "kda")
        if attrs["gate_activation"] != "none":
            logs = array(rng, (heads,), F, -1, 1)
            bias = array(rng, (heads, width) if is_wide else (heads,), F, -1, 1)
    if "delta" in rule:
        rate = array(rng, lead + (heads,), F, 0, 1)
        attrs["beta_activation"] = pick(rng, "none", "sigmoid")
        attrs["qk_l2_norm"] = 1
    state = array(rng, (batch, heads, out, width))
    if len(lead) == 2:
        state = maybe(rng, state)
    if rng.integers(2):
        attrs["scale"] = float(F(rng.uniform(0.2, 1)))
    return ms("GatedDeltaNet",
              [array(rng, lead + (few, width)), array(rng, lead + (few, width)),
               array(rng, lead + (heads, out)), None, decay, rate, state, logs, bias], attrs,
              outputs=2)


LANGUAGE = {
    "GatedDeltaNet": gated_delta_net,
    "MRotaryEmbedding": mixed_rotary,
    "MoE": moe, "QMoE": q_moe, "ScaledSiLU": scaled_silu, "GatedAdd": gated_add,
    "GatedRMSNorm": gated_rms_norm, "BranchwiseRMSNorm": branchwise_rms_norm,
    "LinearAttentionGate": linear_attention_gate, "EngramGate": engram_gate,
    "HyperConnectionPreMix": pre_mix, "HyperConnectionPostMix": post_mix,
    "MoEGroupRouter": group_router, "NGramRepeatBlock": ngram_repeat_block,
}

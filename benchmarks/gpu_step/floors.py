# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""The shortest time that a training step can take on a GPU, from the arithmetic and the bytes that it cannot do without.

Each product takes the longer of its arithmetic, at a share of the measured large product, and its bytes, at nine tenths of the
measured copy bandwidth; attention goes by its own rate; everything else goes by its bytes. Two assumptions: "optimistic" is
what nobody has beaten, "realistic" what the best programs reach. Storage is bf16, gradients of weights, moments and masters f32.
"""
import dataclasses

H100 = {"product_flop_per_s": 798e12, "copy_bytes_per_s": 3.0e12}  # measured on an H100 SXM


@dataclasses.dataclass(frozen=True)
class Assumption:
    products: dict  # by hidden size: share of the large product
    elementwise: float  # share of the copy bandwidth
    attention: dict  # by head size: share of the rates below
    gelu_in_products: bool  # activations cost no pass of their own


ASSUMPTIONS = {
    "optimistic": Assumption({768: 0.90, 1024: 0.92, 1600: 0.94, 4096: 0.95}, 0.93, {64: 1.0, 128: 1.0}, True),
    "realistic": Assumption({768: 0.76, 1024: 0.80, 1600: 0.86, 4096: 0.88}, 0.85, {64: 0.78, 128: 0.95}, False),
}
# FLOP/s of causal attention forward and backward, counting visible pairs, by head size and tokens: the best that is published.
ATTENTION = {(64, 1024): (300e12, 250e12), (128, 2048): (484e12, 370e12), (128, 4096): (591e12, 474e12),
             (128, 8192): (640e12, 540e12)}


def nearest(table, key):
    """Of a table by numbers, or by tuples of them."""
    def distance(known):
        return sum(abs(a - b) for a, b in zip(known, key)) if isinstance(key, tuple) else abs(known - key)
    return table[min(table, key=distance)]


def step_seconds(shape, machine, name):
    """Seconds of one step by part. shape: a shapes.Shape."""
    assumed = ASSUMPTIONS[name]
    gated = shape.family == "llama"
    head_dim = shape.hidden // shape.heads
    rows = shape.micro_batch * shape.tokens
    flop_rate = machine["product_flop_per_s"] * nearest(assumed.products, shape.hidden)
    byte_rate = machine["copy_bytes_per_s"]

    def product(m, n, k, result_bytes=2, more_bytes=0):
        moved = 2 * (m * k + k * n) + result_bytes * m * n + more_bytes
        return max(2 * m * n * k / flop_rate, moved / (0.9 * byte_rate))

    def linear(inputs, outputs, aux_forward=0, aux_backward=0):
        """Forward, gradient of the input, gradient of the weight."""
        return (product(rows, outputs, inputs, more_bytes=aux_forward) + product(rows, inputs, outputs, more_bytes=aux_backward)
                + product(outputs, inputs, rows, result_bytes=4))

    aux = 2 * rows * shape.ffn if assumed.gelu_in_products and not gated else 0  # kept beside the activation, and read again
    qkv = (shape.heads + 2 * shape.kv_heads) * head_dim
    products = (linear(shape.hidden, qkv) + linear(shape.hidden, shape.hidden)
                + linear(shape.hidden, (2 if gated else 1) * shape.ffn, aux_forward=aux)
                + linear(shape.ffn, shape.hidden, aux_backward=aux))

    forward_rate, backward_rate = nearest(ATTENTION, (head_dim, shape.tokens))
    share = nearest(assumed.attention, head_dim)
    visible = 2 * rows * shape.tokens * shape.hidden
    attention = visible / (share * forward_rate) + 2.5 * visible / (share * backward_rate)

    per_row = 2 * 8 * shape.hidden + 2 * 8 * shape.hidden  # residual and norm, forward and backward, twice
    if gated:
        per_row += 6 * shape.ffn + 10 * shape.ffn + 2 * 4 * (shape.heads + shape.kv_heads) * head_dim
    else:
        per_row += 2 * (qkv + 2 * shape.hidden + shape.ffn)  # gradients of biases
        per_row += 0 if assumed.gelu_in_products else 4 * shape.ffn + 6 * shape.ffn
    elementwise_rate = assumed.elementwise * byte_rate
    micro_batches = shape.global_batch / shape.micro_batch
    return {
        "products": micro_batches * shape.layers * products,
        "attention": micro_batches * shape.layers * attention,
        "elementwise": micro_batches * shape.layers * rows * per_row / elementwise_rate,
        "head": micro_batches * linear(shape.hidden, shape.vocab),
        "classifier": micro_batches * 6 * rows * shape.vocab / elementwise_rate,
        "optimizer": 34 * parameters(shape) / elementwise_rate,  # AdamW 30 bytes of each, the norm 4
    }


def matrix_parameters(shape):
    """Of all products: what a token's arithmetic is proportional to."""
    head_dim = shape.hidden // shape.heads
    attention = 2 * (shape.heads + shape.kv_heads) * head_dim
    feed_forward = (3 if shape.family == "llama" else 2) * shape.ffn
    return shape.hidden * (shape.layers * (attention + feed_forward) + shape.vocab)


def parameters(shape):
    """But for norms, biases and positions, which are few."""
    return matrix_parameters(shape) + (shape.hidden * shape.vocab if shape.family == "llama" else 0)


def flop_per_token(shape, attention_factor=6):
    """6: causal attention counts half the square, as llm.c and Megatron-LM have it; 12: all of it, as nanoGPT and torchtitan."""
    return 6 * matrix_parameters(shape) + attention_factor * shape.layers * shape.hidden * shape.tokens


def tokens_per_s(shape, machine, name):
    return shape.global_batch * shape.tokens / sum(step_seconds(shape, machine, name).values())

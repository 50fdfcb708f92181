#!/usr/bin/env python3
"""Prints the constants of tests/unit/data/dataset/sample_order_test.cpp from a second implementation of the closed form
(Philox4x32-10 after Salmon et al., SC'11, and the Feistel network that sample_order.hpp describes). Plain Python."""
M64, M32 = (1 << 64) - 1, (1 << 32) - 1


def mix64(value):
    value = (value + 0x9E3779B97F4A7C15) & M64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & M64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & M64
    return value ^ (value >> 31)


def philox_word0(key, low, high):
    c = [low & M32, low >> 32, high & M32, high >> 32]
    k0, k1 = key & M32, key >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & M32, (p0 >> 32) ^ c[3] ^ k1, p0 & M32]
        k0, k1 = (k0 + 0x9E3779B9) & M32, (k1 + 0xBB67AE85) & M32
    return c[0]


def permute(seed, epoch, size, index):
    sample_order = 3
    key = mix64(mix64(seed) ^ (sample_order << 56) ^ mix64((epoch + 0x51ED2701) & M64))
    bits = (size - 1).bit_length()
    low_bits = bits - bits // 2
    low_mask, high_mask = (1 << low_bits) - 1, (1 << (bits // 2)) - 1
    while True:
        low, high = index & low_mask, index >> low_bits
        for pair in range(0, 8, 2):
            high ^= philox_word0(key, low, pair) & high_mask
            low ^= philox_word0(key, high, pair + 1) & low_mask
        index = high << low_bits | low
        if index < size:
            return index


for seed, size, first in ((1234, 10, 0), (1234, 10, 10), (42, 1000003, 0), (42, 1000003, 5000000),
                          (7, 5000000000011, 4999999999990)):
    numbers = [permute(seed, n // size, size, n % size) for n in range(first, first + 10)]
    print(seed, size, first, numbers)

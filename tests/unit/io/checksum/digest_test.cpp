// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/philox.hpp>
#include <fourfold/io/digest.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstring>
#include <vector>

using fourfold::Box;
using fourfold::ConstTensorView;
using fourfold::DType;
using fourfold::mix64;
using fourfold::Shape;
using fourfold::io::Digest;
using fourfold::io::digest_of_box;

namespace {

/// The formula of the header, element by element.
Digest by_formula(const std::vector<std::uint64_t>& bits) {
  Digest digest;
  for (std::uint64_t i = 0; i < bits.size(); ++i) {
    const std::uint64_t b = i / 256;
    const std::uint64_t j = i % 256;
    digest.low += (mix64(b) | 1) * (mix64(j + 0xbb67ae8584caa73bULL) | 1) * (bits[i] + 1);
    digest.high += (mix64(b + 0x6a09e667f3bcc909ULL) | 1) * (mix64(j + 0x3c6ef372fe94f82bULL) | 1) *
                   (bits[i] + 1);
  }
  return digest;
}

template <class Word>
std::vector<Word> words(std::size_t count) {
  std::vector<Word> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = static_cast<Word>(mix64(i + 17));
  }
  return result;
}

template <class Word>
std::vector<Word> cut_out(const std::vector<Word>& whole, const Shape& shape, const Box& box) {
  std::vector<Word> part(static_cast<std::size_t>(box.elements()));
  for_each_run(Box::whole(shape), box, box, [&](const fourfold::Run& run) {
    std::copy_n(whole.begin() + run.source_element, run.elements,
                part.begin() + run.target_element);
  });
  return part;
}

}  // namespace

TEST_CASE("digest is its formula, for every element size") {
  const Shape shape{7, 11, 13};
  const auto check = [&]<class Word>(Word, DType dtype) {
    const std::vector<Word> data = words<Word>(1001);
    const std::vector<std::uint64_t> bits(data.begin(), data.end());
    CHECK(digest_of_box(shape, Box::whole(shape), ConstTensorView(data.data(), dtype, shape)) ==
          by_formula(bits));
  };
  check(std::uint8_t{}, DType::u8);
  check(std::uint16_t{}, DType::bf16);
  check(std::uint32_t{}, DType::f32);
  check(std::uint64_t{}, DType::i64);
}

TEST_CASE("digest does not depend on the cut") {
  const Shape shape{7, 11, 13};
  const std::vector<std::uint32_t> data = words<std::uint32_t>(1001);
  const Digest whole =
      digest_of_box(shape, Box::whole(shape), ConstTensorView(data.data(), DType::f32, shape));
  std::vector<std::vector<Box>> cuts = {
      {{{0, 0, 0}, {3, 11, 13}}, {{3, 0, 0}, {4, 11, 13}}},
      {{{0, 0, 0}, {7, 5, 13}}, {{0, 5, 0}, {7, 0, 13}}, {{0, 5, 0}, {7, 6, 13}}},
      {{{0, 0, 0}, {7, 11, 1}}, {{0, 0, 1}, {7, 11, 12}}},
      fourfold::boxes_of_flat_range(shape, {0, 412}),
  };
  for (const Box& box : fourfold::boxes_of_flat_range(shape, {412, 1001 - 412})) {
    cuts.back().push_back(box);
  }
  for (const std::vector<Box>& boxes : cuts) {
    Digest sum;
    for (const Box& box : boxes) {
      const std::vector<std::uint32_t> part = cut_out(data, shape, box);
      sum += digest_of_box(shape, box, ConstTensorView(part.data(), DType::f32, box.extent));
    }
    CHECK(sum == whole);
  }
}

TEST_CASE("digest knows positions, signs of zero and every bit") {
  const Shape shape{600};
  std::vector<std::uint32_t> data = words<std::uint32_t>(600);
  const auto digest = [&] {
    return digest_of_box(shape, Box::whole(shape), ConstTensorView(data.data(), DType::f32, shape));
  };
  const Digest good = digest();
  for (std::size_t bit = 0; bit < 600 * 32; bit += 7) {
    data[bit / 32] ^= 1U << (bit % 32);
    CHECK(digest().low != good.low);
    CHECK(digest().high != good.high);
    data[bit / 32] ^= 1U << (bit % 32);
  }
  std::swap(data[3], data[3 + 256]);  // same place of two blocks
  CHECK(digest() != good);
  std::swap(data[3], data[3 + 256]);
  std::swap_ranges(data.begin(), data.begin() + 256, data.begin() + 256);  // two whole blocks
  CHECK(digest() != good);
}

TEST_CASE("digest of scalars, empty boxes and unaligned data") {
  const float value = 1.5F;
  CHECK(digest_of_box({}, Box::whole({}), ConstTensorView(&value, Shape{})) ==
        by_formula({0x3fc00000U}));
  CHECK(digest_of_box({4, 5}, {{2, 0}, {0, 5}}, ConstTensorView(&value, DType::f32, {0, 5})) ==
        Digest{});
  const std::vector<std::uint32_t> data = words<std::uint32_t>(9);
  std::vector<std::byte> shifted(9 * 4 + 1);
  std::memcpy(shifted.data() + 1, data.data(), 9 * 4);
  CHECK(digest_of_box({9}, Box::whole({9}), ConstTensorView(shifted.data() + 1, DType::f32, {9})) ==
        digest_of_box({9}, Box::whole({9}), ConstTensorView(data.data(), DType::f32, {9})));
}

TEST_CASE("digest as text goes both ways") {
  const Digest digest{0x0123456789abcdefULL, 0xfedcba9876543210ULL};
  CHECK(digest.str() == "fedcba98765432100123456789abcdef");
  CHECK(Digest::from_text(digest.str()) == digest);
  CHECK_FALSE(Digest::from_text("fedcba98765432100123456789abcde"));
  CHECK_FALSE(Digest::from_text("fedcba98765432100123456789abcdeg"));
  CHECK_FALSE(Digest::from_text("fedcba9876543210-123456789abcdef"));
}

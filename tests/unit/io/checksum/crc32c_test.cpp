// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "checksum/crc32c_x86.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/io/digest.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string_view>
#include <vector>

using fourfold::io::crc32c;
using fourfold::io::crc32c_by_table;
using fourfold::io::crc32c_combine;

namespace {

std::vector<std::byte> random_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(fourfold::mix64(i) & 0xffU);
  }
  return bytes;
}

}  // namespace

TEST_CASE("crc32c gives the published answers") {
  // RFC 3720 (iSCSI) appendix B.4, and the check value of the catalogue of CRCs.
  using std::as_bytes;
  using std::span;
  CHECK(crc32c(as_bytes(span(std::string_view("123456789")))) == 0xe3069283U);
  std::vector<std::byte> block(32, std::byte{0});
  CHECK(crc32c(block) == 0x8a9136aaU);
  block.assign(32, std::byte{0xff});
  CHECK(crc32c(block) == 0x62a8ab43U);
  for (std::size_t i = 0; i < 32; ++i) {
    block[i] = static_cast<std::byte>(i);
  }
  CHECK(crc32c(block) == 0x46dd794eU);
  for (std::size_t i = 0; i < 32; ++i) {
    block[i] = static_cast<std::byte>(31 - i);
  }
  CHECK(crc32c(block) == 0x113fdb5cU);
  CHECK(crc32c({}) == 0U);
}

TEST_CASE("crc32c of the tables and of all that this processor has agree, whatever is summed") {
  const std::vector<std::byte> bytes = random_bytes(160000);
  for (const std::size_t length :
       {0,     1,     7,     8,     9,     255,   256,    257,    511,    512,
        513,   767,   768,   769,   4096,  12287, 12288,  12289,  13056,  13057,
        36864, 51199, 51200, 51201, 51456, 63488, 102399, 102400, 102663, 159990}) {
    for (std::size_t start = 0; start < 9; ++start) {
      const std::span<const std::byte> part(bytes.data() + start, length);
      const std::uint32_t before = static_cast<std::uint32_t>(fourfold::mix64(length + start));
      const std::uint32_t wanted = crc32c_by_table(part, before);
      CAPTURE(length, start);
      CHECK(crc32c(part, before) == wanted);
#if defined(__x86_64__)
      using namespace fourfold::io;
      if (__builtin_cpu_supports("sse4.2") != 0) {
        CHECK(~crc32c_by_instruction(~before, part.data(), length) == wanted);
      }
      if (can_fold_crc32c()) {
        CHECK(~crc32c_by_folding(~before, part.data(), length) == wanted);
      }
#endif
    }
  }
}

TEST_CASE("crc32c goes on from a previous part, and parts combine") {
  const std::vector<std::byte> bytes = random_bytes(20011);
  const std::uint32_t whole = crc32c(bytes);
  for (const std::size_t cut : {0, 1, 5000, 19999, 20011}) {
    const std::span<const std::byte> a(bytes.data(), cut);
    const std::span<const std::byte> b(bytes.data() + cut, bytes.size() - cut);
    CHECK(crc32c(b, crc32c(a)) == whole);
    CHECK(crc32c_combine(crc32c(a), crc32c(b), b.size()) == whole);
  }
}

TEST_CASE("crc32c shows every flip of one bit") {
  std::vector<std::byte> bytes = random_bytes(1000);
  const std::uint32_t good = crc32c(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1U << (bit % 8));
    bytes[bit / 8] ^= mask;
    REQUIRE(crc32c(bytes) != good);
    bytes[bit / 8] ^= mask;
  }
}

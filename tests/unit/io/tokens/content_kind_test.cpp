// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/fingerprint.hpp>
#include <fourfold/io/token_file.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <string_view>

using namespace std::string_view_literals;
using fourfold::io::is_plain_text;
using fourfold::io::kind_of_content;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

TEST_CASE("text is text, whatever it begins with", "[content_kind]") {
  for (const std::string_view text :
       {""sv, "MZ is how it begins"sv, "BZh91 was a name"sv, "PK: goalkeeper"sv, "PAR: four"sv,
        "ORCs and elves"sv, "Object lessons"sv, "WARC/ is an archive"sv, "ID3: a chunk"sv, "ftyp"sv,
        "RIFFs"sv, "\xef\xbb\xbfwith a mark"sv, "\x1b[1mbold\x1b[0m"sv, "P\xc3\xa4rson"sv,
        "%!PS-Adobe"sv}) {
    CAPTURE(text);
    CHECK_FALSE(kind_of_content(bytes_of(text)));
    CHECK(is_plain_text(bytes_of(text)));
  }
}

TEST_CASE("what is cut, or has no UTF-8, is judged by what is there", "[content_kind]") {
  CHECK_FALSE(kind_of_content(bytes_of("\x1f")));
  CHECK_FALSE(kind_of_content(bytes_of("PAR")));
  CHECK(is_plain_text(bytes_of("caf\xc3")));  // the window ends in a character
  CHECK_FALSE(is_plain_text(bytes_of("caf\xe9 in Latin 1")));
  CHECK_FALSE(kind_of_content(bytes_of("caf\xe9 in Latin 1")));
  CHECK_FALSE(is_plain_text(bytes_of("a\0b"sv)));
  CHECK_FALSE(is_plain_text(bytes_of("\xc0\x80")));
  const auto binary = kind_of_content(bytes_of("some words\0some more"sv));
  REQUIRE(binary);
  CHECK(binary->is_guess);
  CHECK_FALSE(binary->is_text);
  std::string late(std::size_t{64} << 10U, 'x');
  late += '\0';
  CHECK_FALSE(kind_of_content(bytes_of(late)));  // a stray one deep in a text
}

TEST_CASE("the fingerprint of bytes is their XXH3-128", "[content_kind]") {
  fourfold::io::Fingerprint none;
  CHECK(none.str() == "99aa06d3014798d86001c324468d497f");  // published for no bytes, seed 0
  fourfold::io::Fingerprint parts;
  parts.add(bytes_of("to"));
  parts.add(bytes_of("kens"));
  fourfold::io::Fingerprint whole;
  whole.add(bytes_of("tokens"));
  CHECK(parts.str() == whole.str());
  CHECK(whole.str() != none.str());
}

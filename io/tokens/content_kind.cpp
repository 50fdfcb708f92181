// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/token_file.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace fourfold::io {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view decompress = "decompress it first";
constexpr std::string_view unpack = "unpack it first";
constexpr std::string_view extract =
    "write its texts as JSON lines first, one {\"text\": ...} per line";
constexpr std::string_view no_text = "name files of text";
constexpr std::string_view to_utf8 = "convert it first (iconv -t UTF-8)";

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  ContentKind kind;
};

/// The longer one of two that begin alike comes first.
constexpr std::array signatures{
    Signature{0, "\x1f\x8b"sv, {"gzip-compressed", "decompress it first (gzip -d)"}},
    Signature{0, "\x28\xb5\x2f\xfd"sv, {"zstd-compressed", "decompress it first (zstd -d)"}},
    Signature{0, "\xfd\x37zXZ\0"sv, {"xz-compressed", "decompress it first (xz -d)"}},
    Signature{0, "\x04\x22\x4d\x18"sv, {"lz4-compressed", "decompress it first (lz4 -d)"}},
    Signature{0, "\xff\x06\0\0sNaPpY"sv, {"snappy-compressed", decompress}},
    Signature{0, "\x1f\x9d"sv, {"compressed (.Z)", "decompress it first (uncompress)"}},
    Signature{4, "1AY&SY"sv, {"bzip2-compressed", "decompress it first (bzip2 -d)"}},
    Signature{0, "PK\x03\x04"sv, {"a zip archive", "unpack it first (unzip)"}},
    Signature{0, "PK\x05\x06"sv, {"an empty zip archive", no_text}},
    Signature{0, "7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", unpack}},
    Signature{0, "Rar!\x1a\x07"sv, {"a RAR archive", unpack}},
    Signature{257, "ustar"sv, {"a tar archive", "unpack it first (tar -x)"}},
    Signature{0, "PAR1"sv, {"a Parquet file", extract}},
    Signature{0, "ARROW1\0\0"sv, {"an Arrow file", extract}},
    Signature{0, "\xff\xff\xff\xff"sv, {"an Arrow stream", extract}},
    Signature{0, "ORC\x0a"sv, {"an ORC file", extract}},
    Signature{0, "Obj\x01"sv, {"an Avro file", extract}},
    Signature{0, "SQLite format 3\0"sv, {"an SQLite database", extract}},
    Signature{0, "\x89HDF\r\n\x1a\n"sv, {"an HDF5 file", no_text}},
    Signature{0, "\x93NUMPY"sv, {"a NumPy array", no_text}},
    Signature{0, "\x80\x02"sv, {"a Python pickle", no_text}},
    Signature{0, "\x80\x03"sv, {"a Python pickle", no_text}},
    Signature{0, "\x80\x04"sv, {"a Python pickle", no_text}},
    Signature{0, "\x80\x05"sv, {"a Python pickle", no_text}},
    Signature{0, "GGUF"sv, {"a GGUF model", no_text}},
    Signature{8, "{\"__metadata__\""sv, {"a safetensors file", no_text}},
    Signature{0, "MMIDIDX\0\0"sv, {"the index of a token file", no_text}},
    Signature{0,
              "\x7f"
              "ELF"sv,
              {"a program (ELF)", no_text}},
    Signature{0, "WARC/0.1"sv, {"a web archive (WARC)", "extract its texts first"}},
    Signature{0, "WARC/1."sv, {"a web archive (WARC)", "extract its texts first"}},
    Signature{0, "%PDF-"sv, {"a PDF document", "extract its text first (pdftotext)"}},
    Signature{0, "{\\rtf"sv, {"an RTF document", "save it as plain text first"}},
    Signature{0,
              "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv,
              {"an Office document", "save it as plain text first"}},
    Signature{0, "\x89PNG\r\n"sv, {"a PNG image", no_text}},
    Signature{0, "\xff\xd8\xff"sv, {"a JPEG image", no_text}},
    Signature{0, "GIF87a"sv, {"a GIF image", no_text}},
    Signature{0, "GIF89a"sv, {"a GIF image", no_text}},
    Signature{0, "II*\0"sv, {"a TIFF image", no_text}},
    Signature{0, "MM\0*"sv, {"a TIFF image", no_text}},
    Signature{8, "WEBP"sv, {"a WebP image", no_text}},
    Signature{8, "WAVEfmt "sv, {"a sound file", no_text}},
    Signature{0, "OggS"sv, {"a sound file", no_text}},
    Signature{0, "fLaC"sv, {"a sound file", no_text}},
    Signature{0, "ID3\x03"sv, {"a sound file", no_text}},
    Signature{0, "ID3\x04"sv, {"a sound file", no_text}},
    Signature{4, "ftyp"sv, {"a film (MP4)", no_text}},
    Signature{0, "\xff\xfe\0\0"sv, {"text in UTF-32", to_utf8, true}},
    Signature{0, "\0\0\xfe\xff"sv, {"text in UTF-32", to_utf8, true}},
    Signature{0, "\xff\xfe"sv, {"text in UTF-16", to_utf8, true}},
    Signature{0, "\xfe\xff"sv, {"text in UTF-16", to_utf8, true}},
    Signature{0,
              "version https://git-lfs.github.com/spec/"sv,
              {"a pointer of Git LFS, not the file itself", "fetch the file first (git lfs pull)"}},
};

/// Every other byte is NUL, as in text of Latin letters: it says which half.
bool is_utf16(std::string_view text) {
  std::array<std::size_t, 2> nul{};
  for (std::size_t i = 0; i < text.size(); ++i) {
    nul[i % 2] += text[i] == '\0' ? 1 : 0;
  }
  const std::size_t half = text.size() / 2;
  const auto is_half = [&](std::size_t full, std::size_t empty) {
    return nul[full] > half / 2 && nul[empty] <= half / 64;
  };
  return half >= 4 && (is_half(0, 1) || is_half(1, 0));
}

/// Bytes of the UTF-8 character that begins at `at`; 0: none does. A cut one counts as whole.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto first = static_cast<std::uint8_t>(text[at]);
  const std::size_t bytes = first < 0x80   ? 1
                            : first < 0xc2 ? 0
                            : first < 0xe0 ? 2
                            : first < 0xf0 ? 3
                            : first < 0xf5 ? 4
                                           : 0;
  for (std::size_t i = 1; i < bytes && at + i < text.size(); ++i) {
    if ((static_cast<std::uint8_t>(text[at + i]) & 0xc0U) != 0x80) {
      return 0;
    }
  }
  return bytes;
}

bool is_control(char c) {
  return (static_cast<std::uint8_t>(c) < 0x20 &&
          "\t\n\v\f\r\x1b"sv.find(c) == std::string_view::npos) ||
         c == '\x7f';
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::optional<ContentKind> kind_of_content(std::span<const std::byte> bytes) {
  constexpr std::size_t looked_at = std::size_t{64} << 10U;
  const std::string_view text = text_of(bytes.first(std::min(bytes.size(), looked_at)));
  for (const Signature& signature : signatures) {
    if (text.size() >= signature.offset &&
        text.substr(signature.offset).starts_with(signature.bytes)) {
      return signature.kind;
    }
  }
  if (text.find('\0') == std::string_view::npos) {
    return std::nullopt;
  }
  return is_utf16(text) ? ContentKind{"text in UTF-16", to_utf8, true, true}
                        : ContentKind{"binary (it has NUL bytes)", no_text, false, true};
}

bool is_plain_text(std::span<const std::byte> bytes) {
  const std::string_view text = text_of(bytes);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t count = character_bytes(text, at);
    if (count == 0 || is_control(text[at])) {
      return false;
    }
    at += count;
  }
  return true;
}

}  // namespace fourfold::io

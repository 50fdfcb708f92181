// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "external_formats/external_file.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/llmc_checkpoint.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace fourfold::io {
namespace {

constexpr std::int32_t magic = 20240326;
constexpr std::int32_t version_f32 = 3;
constexpr std::int32_t version_bf16 = 5;
using Header = std::array<std::int32_t, 256>;

/// Bounds with which the number of bytes of all arrays fits into 63 bits.
constexpr std::int64_t most_rows = 1'000'000'000;
constexpr std::int64_t most_layers = 100'000;
constexpr std::int64_t most_features = 1'000'000;

bool plausible(const LlmcSizes& sizes) {
  const auto within = [](std::int64_t value, std::int64_t most) {
    return 1 <= value && value <= most;
  };
  return within(sizes.context, most_rows) && within(sizes.padded_vocab, most_rows) &&
         within(sizes.vocab, sizes.padded_vocab) && within(sizes.layers, most_layers) &&
         within(sizes.hidden, most_features) && within(sizes.heads, sizes.hidden) &&
         sizes.hidden % sizes.heads == 0;
}

}  // namespace

std::vector<std::pair<std::string, Shape>> llmc_arrays(const LlmcSizes& sizes) {
  const std::int64_t L = sizes.layers;
  const std::int64_t C = sizes.hidden;
  return {{"wte", {sizes.padded_vocab, C}},
          {"wpe", {sizes.context, C}},
          {"ln1w", {L * C}},
          {"ln1b", {L * C}},
          {"qkvw", {L * 3 * C, C}},
          {"qkvb", {L * 3 * C}},
          {"attprojw", {L * C, C}},
          {"attprojb", {L * C}},
          {"ln2w", {L * C}},
          {"ln2b", {L * C}},
          {"fcw", {L * 4 * C, C}},
          {"fcb", {L * 4 * C}},
          {"fcprojw", {L * C, 4 * C}},
          {"fcprojb", {L * C}},
          {"lnfw", {C}},
          {"lnfb", {C}}};
}

std::string llmc_header(const LlmcSizes& sizes, DType dtype) {
  FOURFOLD_EXPECT(dtype == DType::f32 || dtype == DType::bf16);
  FOURFOLD_EXPECT(plausible(sizes));
  static_assert(std::endian::native == std::endian::little);
  const auto number = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  const Header header{magic,
                      dtype == DType::f32 ? version_f32 : version_bf16,
                      number(sizes.context),
                      number(sizes.vocab),
                      number(sizes.layers),
                      number(sizes.heads),
                      number(sizes.hidden),
                      number(sizes.padded_vocab)};
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), header.data(), sizeof header);
  return bytes;
}

LlmcCheckpoint::LlmcCheckpoint(const std::filesystem::path& path) {
  const std::shared_ptr<const InputFile> opened = open_external(path);
  Header header{};
  const std::uint64_t size = opened->size_bytes();
  if (size < sizeof header || opened->read_at(0, std::as_writable_bytes(std::span(header))) ||
      header[0] != magic) {
    throw UserError(ExitCode::config,
                    format_message("{}: is no model of llm.c (it does not begin with {}); name a "
                                   "file that llm.c or its train_gpt2.py has written",
                                   path.string(), magic));
  }
  if (header[1] != version_f32 && header[1] != version_bf16) {
    throw UserError(ExitCode::config,
                    format_message("{}: has version {} of llm.c's format ({} and {} can be read); "
                                   "write it again with a newer llm.c",
                                   path.string(), header[1], version_f32, version_bf16));
  }
  sizes_ = {.context = header[2],
            .vocab = header[3],
            .padded_vocab = header[7],
            .layers = header[4],
            .heads = header[5],
            .hidden = header[6]};
  const DType dtype = header[1] == version_f32 ? DType::f32 : DType::bf16;
  std::uint64_t end = sizeof header;
  std::vector<StoredArray::Description> arrays;
  if (plausible(sizes_)) {
    for (const auto& [name, shape] : llmc_arrays(sizes_)) {
      const std::uint64_t bytes = shape.elements() * size_in_bytes(dtype);
      arrays.push_back({name, std::string(fourfold::name(dtype)), dtype, shape, end, bytes});
      end += bytes;
    }
  }
  if (arrays.empty() || end != size) {
    throw UserError(
        ExitCode::data_corrupt,
        format_message(
            "{}: has {} bytes, and a model of {} layers, {} heads, {} features, {} positions and "
            "{} of {} rows of the vocabulary {}; the file is damaged, fetch or make it again",
            path.string(), size, sizes_.layers, sizes_.heads, sizes_.hidden, sizes_.context,
            sizes_.vocab, sizes_.padded_vocab,
            arrays.empty() ? "cannot be" : format_message("takes {}", end)));
  }
  for (StoredArray::Description& array : arrays) {
    arrays_.emplace_back(opened, path, std::move(array));
  }
}

}  // namespace fourfold::io

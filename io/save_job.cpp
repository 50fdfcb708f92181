// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save_job.hpp"

#include <algorithm>
#include <numeric>

namespace fourfold::io {
namespace {

constexpr std::size_t words_per_extent = 4;
constexpr std::size_t words_per_file = 5;

template <class Map, class AddValue>
void add_map(Fingerprint& fingerprint, const Map& map, const AddValue& add_value) {
  fingerprint.add(std::ssize(map));
  for (const auto& [name, value] : map) {
    fingerprint.add(std::string_view(name));
    add_value(value);
  }
}

/// What a run computes on with, besides the tensors.
void add_state(Fingerprint& fingerprint, const SaveRequest& request) {
  fingerprint.add(request.step);
  add_map(fingerprint, request.scalars.integers,
          [&](std::int64_t value) { fingerprint.add(value); });
  add_map(fingerprint, request.scalars.reals,
          [&](double value) { fingerprint.add(std::as_bytes(std::span(&value, 1))); });
}

std::string identity_of(const SaveRequest& request, const Index& index) {
  Fingerprint fingerprint;
  fingerprint.add(format_version);
  add_state(fingerprint, request);
  for (const StoredTensor& tensor : index.tensors) {
    fingerprint.add(std::string_view(tensor.id.str()));
    fingerprint.add(name(tensor.dtype));
    fingerprint.add(std::string_view(tensor.shape.str()));
    fingerprint.add(std::string_view(tensor.digest.str()));
  }
  return fingerprint.str();
}

/// Tensors by id, and where each layout's tensor went.
std::vector<std::size_t> list_tensors(std::span<const TensorLayout> layouts, Index& index) {
  std::vector<std::size_t> order(layouts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return layouts[a].id < layouts[b].id; });
  std::vector<std::size_t> place(layouts.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TensorLayout& layout = layouts[order[i]];
    place[order[i]] = i;
    index.tensors.push_back({layout.id, layout.dtype, layout.shape, {}});
  }
  return place;
}

/// Files by rank; leaves each rank's words of its extents.
std::vector<std::span<const std::uint64_t>> list_files(const SaveJob& job,
                                                       std::span<const std::uint64_t> words,
                                                       Manifest& manifest, Index& index,
                                                       std::vector<std::size_t>& file_of) {
  const std::size_t ranks = job.extents_of_rank.size();
  std::vector<std::span<const std::uint64_t>> extent_words(ranks);
  file_of.assign(ranks, 0);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto extents = static_cast<std::size_t>(job.extents_of_rank[rank]);
    if (extents == 0) {
      continue;
    }
    file_of[rank] = manifest.files.size();
    manifest.files.push_back({payload_file_name(static_cast<int>(rank), static_cast<int>(ranks)),
                              words[0], static_cast<std::uint32_t>(words[4]),
                              static_cast<std::uint32_t>(words[3])});
    index.tables.push_back({words[1], words[2]});
    extent_words[rank] = words.subspan(words_per_file, extents * words_per_extent);
    words = words.subspan(words_per_file + extents * words_per_extent);
  }
  return extent_words;
}

}  // namespace

SaveJob::SaveJob(const SaveRequest& save_request, SavePlan save_plan, int ranks)
    : request(save_request),
      plan(std::move(save_plan)),
      extents_of_rank(static_cast<std::size_t>(ranks), 0) {
  std::vector<std::int64_t> next(request.tensors.size(), 0);
  for (const PlannedExtent& extent : plan.extents) {
    numbers.push_back(next[extent.tensor]++);
    ++extents_of_rank[static_cast<std::size_t>(extent.writer)];
  }
}

std::uint64_t SaveJob::payload_bytes() const {
  return static_cast<std::uint64_t>(
      std::accumulate(plan.bytes_of_rank.begin(), plan.bytes_of_rank.end(), std::int64_t{0}));
}

void add_run_facts(Fingerprint& fingerprint, const SaveRequest& request) {
  add_state(fingerprint, request);
  fingerprint.add(std::string_view(request.mesh.str()));
  add_map(fingerprint, request.scalars.texts,
          [&](const std::string& value) { fingerprint.add(std::string_view(value)); });
}

std::vector<std::uint64_t> words_of(const WrittenPayload& payload) {
  std::vector<std::uint64_t> words{payload.file_bytes, payload.table_offset, payload.chunks,
                                   payload.table_crc32c, payload.file_crc32c};
  for (const WrittenExtent& extent : payload.extents) {
    words.insert(words.end(),
                 {extent.byte_offset, extent.first_chunk, extent.digest.low, extent.digest.high});
  }
  return words;
}

std::int64_t word_count(const SaveJob& job, int rank) {
  const auto extents =
      static_cast<std::size_t>(job.extents_of_rank[static_cast<std::size_t>(rank)]);
  return static_cast<std::int64_t>(extents == 0 ? 0 : words_per_file + extents * words_per_extent);
}

void describe(const SaveJob& job, std::span<const std::uint64_t> words, Manifest& manifest,
              Index& index) {
  const auto layouts = job.request.tensors;
  const std::vector<std::size_t> place = list_tensors(layouts, index);
  std::vector<std::size_t> file_of;
  std::vector<std::span<const std::uint64_t>> extent_words =
      list_files(job, words, manifest, index, file_of);
  for (std::size_t i = 0; i < job.plan.extents.size(); ++i) {
    const PlannedExtent& planned = job.plan.extents[i];
    const auto writer = static_cast<std::size_t>(planned.writer);
    const std::span<const std::uint64_t> row = extent_words[writer];
    const std::uint64_t bytes = static_cast<std::uint64_t>(planned.box.elements()) *
                                size_in_bytes(layouts[planned.tensor].dtype);
    index.extents.push_back({place[planned.tensor],
                             file_of[writer],
                             job.numbers[i],
                             planned.box,
                             row[0],
                             bytes,
                             row[1],
                             {row[2], row[3]}});
    index.tensors[place[planned.tensor]].digest += index.extents.back().digest;
    extent_words[writer] = row.subspan(words_per_extent);
  }
  std::sort(index.extents.begin(), index.extents.end(),
            [](const StoredExtent& a, const StoredExtent& b) {
              return a.tensor != b.tensor ? a.tensor < b.tensor : a.number < b.number;
            });
  index.scalars = job.request.scalars;
  manifest.step = job.request.step;
  manifest.mesh = job.request.mesh;
  manifest.model = model_fingerprint(layouts);
  manifest.identity = identity_of(job.request, index);
  for (const StoredTensor& tensor : index.tensors) {
    manifest.digests[tensor.id] = tensor.digest;
  }
}

}  // namespace fourfold::io

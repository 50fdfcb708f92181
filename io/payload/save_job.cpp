// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "payload/save_job.hpp"

#include "format/checkpoint_contents.hpp"

#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace fourfold::io {
namespace {

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

/// Which rank writes into which file, where the options leave it open.
std::vector<int> file_of_rank(const PlanOptions& options, int ranks) {
  if (options.file_of_rank.empty()) {
    return shared_files(ranks, ranks);
  }
  FOURFOLD_EXPECT(std::ssize(options.file_of_rank) == ranks);
  return options.file_of_rank;
}

std::vector<PlannedFile> files_of(const SavePlan& plan, const std::vector<int>& file_of_rank) {
  const int files = *std::ranges::max_element(file_of_rank) + 1;
  std::vector<std::vector<std::size_t>> extents(files);
  for (std::size_t i = 0; i < plan.extents.size(); ++i) {
    const std::size_t writer = plan.extents[i].writer;
    extents[file_of_rank[writer]].push_back(i);
  }
  std::vector<PlannedFile> planned;
  for (int file = 0; file < files; ++file) {
    std::vector<std::size_t>& mine = extents[file];
    std::ranges::stable_sort(mine, {}, [&](std::size_t i) { return plan.extents[i].writer; });
    if (!mine.empty()) {
      planned.push_back({payload_file_name(file, files), std::move(mine)});
    }
  }
  return planned;
}

}  // namespace

SaveJob::SaveJob(const SaveRequest& request, const PlanOptions& options, int ranks)
    : step(request.step),
      mesh(request.mesh),
      scalars(request.scalars),
      tensors(request.tensors),
      plan(plan_save(request.tensors, ranks, options)),
      files(files_of(plan, file_of_rank(options, ranks))),
      run_facts(run_facts_fingerprint(request)) {
  std::vector<std::int64_t> next(tensors.size(), 0);
  for (const PlannedExtent& extent : plan.extents) {
    numbers.push_back(next[extent.tensor]++);
  }
}

std::uint64_t SaveJob::bytes_of(std::size_t extent) const {
  return plan.extents[extent].box.elements() * size_in_bytes(layout_of(extent).dtype);
}

StoredExtent SaveJob::stored(std::size_t extent) const {
  const PlannedExtent& planned = plan.extents[extent];
  return {.tensor = planned.tensor,
          .number = numbers[extent],
          .box = planned.box,
          .bytes = bytes_of(extent),
          .digest = {}};
}

std::int64_t SaveJob::payload_bytes() const {
  return std::accumulate(plan.bytes_of_rank.begin(), plan.bytes_of_rank.end(), std::int64_t{0});
}

void add_run_facts(Fingerprint& fingerprint, const SaveRequest& request) {
  add_state(fingerprint, request.step, request.scalars);
  fingerprint.add(std::string_view(request.mesh.str()));
  fingerprint.add(std::ssize(request.scalars.texts));
  for (const auto& [name, text] : request.scalars.texts) {
    fingerprint.add(std::string_view(name));
    fingerprint.add(std::string_view(text));
  }
}

std::string run_facts_fingerprint(const SaveRequest& request) {
  Fingerprint fingerprint;
  add_run_facts(fingerprint, request);
  return fingerprint.str();
}

void describe(const SaveJob& job, std::span<const WrittenPayload> written, Manifest& manifest,
              Index& index) {
  const std::vector<std::size_t> place = list_tensors(job.tensors, index);
  for (std::size_t file = 0; file < job.files.size(); ++file) {
    const WrittenPayload& payload = written[file];
    manifest.files.push_back(
        {job.files[file].name, payload.file_bytes, payload.file_crc32c, payload.table_crc32c});
    index.tables.push_back(payload.table);
    for (StoredExtent extent : payload.extents) {
      extent.tensor = place[extent.tensor];
      extent.file = file;
      index.tensors[extent.tensor].digest += extent.digest;
      index.extents.push_back(extent);
    }
  }
  std::sort(index.extents.begin(), index.extents.end(),
            [](const StoredExtent& a, const StoredExtent& b) {
              return a.tensor != b.tensor ? a.tensor < b.tensor : a.number < b.number;
            });
  index.scalars = job.scalars;
  manifest.step = job.step;
  manifest.mesh = job.mesh;
  manifest.model = model_fingerprint(job.tensors);
  manifest.identity = state_identity(job.step, index);
  for (const StoredTensor& tensor : index.tensors) {
    manifest.digests[tensor.id] = tensor.digest;
  }
}

}  // namespace fourfold::io

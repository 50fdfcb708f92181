// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/line_follower.hpp>
#include <fourfold/kernels/matmul_tuning.hpp>
#include <fourfold/train/matmul_tuning_file.hpp>

#include <map>
#include <system_error>

namespace fourfold::train {

LibraryTuning merged(std::span<const LibraryTuning> all) {
  FOURFOLD_EXPECT(!all.empty());
  std::map<std::string, kernels::MatmulTuning> of_product;
  for (const LibraryTuning& one : all) {
    if (one.library != all.front().library) {
      continue;
    }
    for (const kernels::MatmulTuning& choice : one.choices) {
      of_product.emplace(choice.product, choice);
    }
  }
  LibraryTuning result{.library = all.front().library, .choices = {}};
  for (const auto& [product, choice] : of_product) {
    result.choices.push_back(choice);
  }
  return result;
}

std::optional<LibraryTuning> read_matmul_tuning(const std::filesystem::path& path) {
  constexpr std::uint64_t most_bytes = 64 << 20;
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
    return std::nullopt;
  }
  const std::optional<std::string> text = io::text_if_readable(path, most_bytes);
  auto choices = text ? choices_from_json(*text) : std::nullopt;
  if (!choices) {
    throw UserError(ExitCode::config,
                    format_message("train.matmul_tuning_file = \"{}\" is not to be used (it is "
                                   "{}); name another file, or remove it: it is made anew",
                                   path.string(),
                                   text ? "none that fourfold has written"
                                        : "no regular file that can be read"));
  }
  return choices;
}

void write_matmul_tuning(const std::filesystem::path& path, const LibraryTuning& choices) {
  const std::string text = to_json(choices);
  if (io::text_if_readable(path, text.size()) == text) {
    return;
  }
  io::AtomicFile file(path);
  file.write(text);
  file.publish();
}

MatmulTuningFile::MatmulTuningFile(const runfile::RunConfig& config, comm::Communicator& world)
    : world_(world) {
  if (config.train.matmul_tuning_file.empty()) {
    return;
  }
  library_ = kernels::matmul_library();
  if (library_.empty()) {
    log::info("train.matmul_tuning_file has no effect: here each product is made in one way");
    return;
  }
  path_ = config.train.matmul_tuning_file;
  LibraryTuning mine{.library = library_, .choices = {}};
  if (world.rank() == 0) {
    mine = read_matmul_tuning(path_).value_or(mine);
  }
  LibraryTuning known =
      choices_from_json(comm::broadcast_text(world, to_json(mine), 0)).value_or(mine);
  if (known.library != library_) {
    log::info(format_message("{} is of {}, and this is {}: products are measured anew",
                             path_.string(), known.library, library_));
    known.choices.clear();
  }
  kernels::set_matmul_tuning(known.choices, true);
}

void MatmulTuningFile::write() {
  if (path_.empty()) {
    return;
  }
  std::vector<LibraryTuning> all;
  for (const std::string& text : comm::all_gather_text(
           world_, to_json({.library = library_, .choices = kernels::known_matmul_tuning()}))) {
    all.push_back(choices_from_json(text).value_or(LibraryTuning{}));
  }
  if (world_.rank() == 0) {
    all.push_back(read_matmul_tuning(path_).value_or(LibraryTuning{}));  // others may have added
    const LibraryTuning choices = merged(all);
    write_matmul_tuning(path_, choices);
    log::info(
        format_message("{}: the ways of {} products", path_.string(), choices.choices.size()));
  }
}

}  // namespace fourfold::train

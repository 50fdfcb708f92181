// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Token files are known by what is in them: two of one name, on disks of two nodes or on one disk
/// at two times, may have as many tokens, and others.
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fourfold::train {

inline constexpr std::int64_t most_token_windows = 16;  ///< of a file

/// Of each file in order "SAMPLES:RECORD": a digest of windows of 1024 tokens (16 of them spread
/// evenly over a file, fewer where there are more than 64 files), and the one of all tokens that
/// the record has, or "-". Local; reads up to 4 MB.
std::vector<std::string> token_digests(const data::TokenDataset& dataset);

/// Whether two such digests can be of the same tokens.
bool can_be_same_tokens(const std::string& one, const std::string& other);

/// When each file was last written to, in nanoseconds since 1970; "-" where that is not told.
std::vector<std::string> token_times(const data::TokenDataset& dataset);

/// Refuses token files that are other ones on some ranks than on rank 0, as copies on the nodes'
/// own disks can be: a step would be made of both. Files with the sizes and times of rank 0's are
/// taken for the same ones; others are compared by token_digests(). Collective: a broadcast of a
/// few words for each file and one reduction, and another broadcast where any differ.
/// @param what  which files they are: "data.train"
/// @throws UserError (config) on all ranks, naming the first rank that has others, and the file
void require_same_tokens(const data::TokenDataset& dataset, const std::string& what,
                         comm::Communicator& world);

/// Every key of the run file with its value, a line each: "optim.lr = 0.001".
std::vector<std::string> lines_of(const runfile::RunConfig& config);

/// Ranks can be started with different run files or options, and would train replicas of different
/// models without noticing. Collective: one broadcast of the lines and one gather of the first that
/// differs.
/// @param lines  without newlines; which they are agrees on all ranks, what they say should
/// @throws UserError (exit code config) on all ranks, naming the first line that differs, what it
/// says and on which ranks
void require_same_on_ranks(std::span<const std::string> lines, comm::Communicator& world);

}  // namespace fourfold::train

// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/data/sample_order.hpp>
#include <fourfold/io/token_file.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fourfold::data {

/// A target that takes no part in the loss: the value that the cross-entropy kernel skips.
inline constexpr std::int32_t ignored_target = -100;

/// Token files as one stream of tokens, cut into samples of `context` inputs and `context` targets.
///
/// The files are read as one long stream in the given order (files of a pattern by name). Documents
/// are not kept apart: the stream is packed, a sample may begin in one document and end in another,
/// and attention sees across; where documents meet there is the end-of-text token that `fourfold
/// data prepare --append-eot` puts there. With T tokens in the stream there are N = ceil((T - 1) /
/// context) samples; position p in [0, N) has the inputs [p c, p c + c) and the targets [p c + 1, p
/// c + c + 1). When c does not divide T - 1 the last sample is ragged: its missing inputs are token
/// 0 and its missing targets `ignored_target`, so each of the T - 1 transitions of the stream is
/// learned exactly once per epoch.
///
/// Owns the mappings. const members may be called from several threads at once. A sample's content
/// depends on (files, context, seed, sample number) alone, never on the mesh.
class TokenDataset {
 public:
  /// In which order sample numbers visit positions.
  enum class Order {
    shuffled,    ///< shuffled_position(): training
    sequential,  ///< number modulo N: evaluation on held-back data
  };

  struct Options {
    std::int64_t context = 0;  ///< tokens per sample; >= 1
    std::int64_t vocab = 0;    ///< tokens must be below it; 1 to 2^31
    std::uint64_t seed = 0;    ///< of the shuffled order
    Order order = Order::shuffled;
  };

  /// @param files  paths as TokenFile takes them, or shell patterns (*, ?, [...]); a name that is
  ///   there as it is written is no pattern
  /// @throws UserError: config for an empty list, a pattern that matches nothing, a missing file,
  ///   or fewer than 2 tokens; data_corrupt as TokenFile says
  TokenDataset(std::span<const std::string> files, const Options& options);

  std::int64_t tokens() const noexcept { return tokens_; }
  std::int64_t context() const noexcept { return options_.context; }
  /// N: samples per epoch, the ragged one included.
  std::int64_t samples() const noexcept { return samples_; }
  std::span<const io::TokenFile> files() const noexcept { return files_; }

  /// Position of a sample number of the run in [0, samples()). O(1). @pre sample_number >= 0
  std::int64_t position(std::int64_t sample_number) const;

  /// Writes the inputs and targets of sample `sample_number` (any epoch).
  /// @pre tokens.size() == targets.size() == context()
  /// @return how many targets are not ignored
  /// @throws UserError (data_corrupt) naming file and token when one lies outside the vocabulary
  std::int64_t fill(std::int64_t sample_number, std::span<std::int32_t> tokens,
                    std::span<std::int32_t> targets) const;

  /// Asks the kernel to read the pages of this sample ahead; does not wait. Call it for the samples
  /// of the next step while this one computes.
  void prefetch(std::int64_t sample_number) const;

 private:
  /// Calls visit(token file, range inside it) for the pieces of stream tokens [begin, begin +
  /// count).
  template <class Visit>
  void for_each_piece(std::int64_t begin, std::int64_t count, Visit&& visit) const;

  Options options_;
  std::vector<io::TokenFile> files_;
  std::vector<std::int64_t> begins_;  ///< first stream token of each file, then the end of the last
  std::int64_t tokens_ = 0;
  std::int64_t samples_ = 0;
};

/// The files that a list of names and shell patterns means: patterns expanded by name in byte
/// order; `X.idx` and `X.json` beside an `X.bin` that matched too are not files of their own, and a
/// temporary name (io/temporary_name.hpp) is no file.
/// @throws UserError (config) as TokenDataset says
std::vector<std::string> expand_patterns(std::span<const std::string> names);

}  // namespace fourfold::data

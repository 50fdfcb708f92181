// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/step_place.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// Which steps are kept; those of all three kinds together.
struct Retention {
  int keep_last = 0;                  ///< the newest ones; 0 keeps all there are
  std::int64_t keep_every_steps = 0;  ///< multiples of this; 0: none for that
  int keep_best = 0;  ///< those of the lowest validation loss; of equals the newest. Losses of
                      ///< other validation data than the newest step's are not looked at
};

/// The text of a checkpoint's scalars under which a run notes the loss of an evaluation of the
/// step, as a number: a remark about the state, no part of it.
inline constexpr const char* validation_loss_name = "validation_loss";

/// Beside it: of which data that is. Losses of others are not compared.
inline constexpr const char* validation_data_name = "validation_data";

struct KnownStep {
  std::int64_t step = 0;
  std::optional<double> validation_loss = {};
  std::string validation_data = {};  ///< empty: not known
};

/// The steps that need not be kept, ascending. A pure function. The newest one is never among them.
/// @param steps  ascending
std::vector<std::int64_t> steps_to_remove(std::span<const KnownStep> steps,
                                          const Retention& retention);

/// The steps of a directory up to `newest`, ascending, with the losses that are noted in those that
/// hold together, if `with_losses`. Local.
std::vector<KnownStep> known_steps(const std::filesystem::path& directory, std::int64_t newest,
                                   bool with_losses);

/// The folder of the step that keep_best = 1 would keep: the lowest noted validation loss on the
/// newest step's data; of equals the newest. Nothing where none that holds together notes one.
/// Local.
std::optional<std::filesystem::path> best_step(const std::filesystem::path& directory);

/// Why a step is not removed: somebody has put something into it. Nothing where nobody has, or the
/// step is a link. Local.
std::optional<PassedOver> why_not_removed(const std::filesystem::path& directory,
                                          std::int64_t step);

/// Removes steps, each renamed to ".trash-<random>" first, so that no folder with a step's name is
/// ever incomplete. One in which somebody has put something is kept, which is a problem. Of a link
/// the link is removed and what it leads to is kept, which is logged. Local.
/// @param ask  called before each of them: what it throws ends the removal
/// @return what went wrong, line by line
std::vector<std::string> remove_steps(const std::filesystem::path& directory,
                                      std::span<const std::int64_t> steps,
                                      const std::function<void()>& ask = {});

}  // namespace fourfold::io

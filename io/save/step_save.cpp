// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/step_save.hpp"

#include "save/save_together.hpp"
#include "save/step_commit.hpp"

namespace fourfold::io {

StepSave::StepSave(const std::filesystem::path& directory, const StoreOptions& options,
                   const SaveRequest& request, comm::Communicator& communicator)
    : directory_(directory), options_(options), share_(directory, options, request, communicator) {
  write_together(communicator, [&] { options_.check_lease(); });
  make_way(directory_, step(), communicator, options_.damaged_steps->contains(step()));
  write_together(communicator, [&] {
    if (communicator.rank() == 0) {
      folder_.emplace(directory_, step(), share_.job().room());
    }
  });
  temporary_ =
      comm::broadcast_text(communicator, folder_ ? folder_->path().string() : std::string(), 0);
}

void StepSave::publish() {
  options_.check_lease();
  publish_step(*folder_, directory_, share_.job(), share_.files(),
               {options_.keep_last, options_.keep_every_steps, options_.keep_best});
}

std::filesystem::path StepSave::folder() const {
  return directory_ / step_folder_name(step());
}

}  // namespace fourfold::io

// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <array>
#include <vector>

namespace fourfold::telemetry {

void TensorBoardFile::start(const RunStart& run, double unix_time_s) {
  // first_step updates are done, so the first one whose older records are void is the next.
  const std::int64_t first_void = run.first_step == 0 ? 0 : run.first_step + 1;
  file_.emplace(directory_, first_void, unix_time_s);
}

void TensorBoardFile::step(const StepRecord& record, double unix_time_s) {
  FOURFOLD_EXPECT(file_.has_value());
  std::vector<io::EventScalar> scalars{
      {"train/loss", static_cast<float>(record.loss)},
      {"train/grad_norm", static_cast<float>(record.grad_norm)},
      {"train/lr", static_cast<float>(record.lr)},
      {"speed/tokens_per_s", static_cast<float>(record.tokens_per_s)},
      {"speed/step_s", static_cast<float>(record.step_s)},
      {"speed/data_s", static_cast<float>(record.data_s)},
  };
  if (record.loss_scale > 0) {
    scalars.push_back({"train/loss_scale", static_cast<float>(record.loss_scale)});
    scalars.push_back({"train/skipped_steps", static_cast<float>(record.skipped_steps)});
  }
  if (record.mfu > 0) {
    scalars.push_back({"speed/mfu", static_cast<float>(record.mfu)});
  }
  if (record.device_total_bytes > 0) {
    scalars.push_back(
        {"memory/device_used_gib",
         static_cast<float>(static_cast<double>(record.device_used_bytes) / (1 << 30))});
  }
  file_->add(record.step, unix_time_s, scalars);
}

void TensorBoardFile::evaluation(const EvalRecord& record, double unix_time_s) {
  FOURFOLD_EXPECT(file_.has_value());
  const std::array<io::EventScalar, 1> scalars{
      {{"validation/loss", static_cast<float>(record.loss)}}};
  file_->add(record.step, unix_time_s, scalars);
}

}  // namespace fourfold::telemetry

// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/amount.hpp>
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
      {"train/loss", record.loss},     {"train/grad_norm", record.grad_norm},
      {"train/lr", record.lr},         {"speed/tokens_per_s", record.tokens_per_s},
      {"speed/step_s", record.step_s}, {"speed/data_s", record.data_s},
  };
  if (record.loss_scale > 0) {
    scalars.push_back({"train/loss_scale", record.loss_scale});
    scalars.push_back({"train/skipped_steps", static_cast<double>(record.skipped_steps)});
  }
  if (record.mfu > 0) {
    scalars.push_back({"speed/mfu", record.mfu});
  }
  if (record.device_total_bytes > 0) {
    scalars.push_back({"memory/device_used_gib", gib(record.device_used_bytes)});
  }
  file_->add(record.step, unix_time_s, scalars);
}

void TensorBoardFile::evaluation(const EvalRecord& record, double unix_time_s) {
  FOURFOLD_EXPECT(file_.has_value());
  const std::array<io::EventScalar, 1> scalars{{{"validation/loss", record.loss}}};
  file_->add(record.step, unix_time_s, scalars);
}

}  // namespace fourfold::telemetry

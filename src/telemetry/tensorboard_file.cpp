// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "step_fields.hpp"

#include <fourfold/base/contract.hpp>

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
  std::vector<io::EventScalar> scalars;
  for (const StepField& field : step_fields) {
    if (!field.tag.empty() && field.is_known(record)) {
      scalars.push_back({field.tag, StepField::value(field.number, record) / field.tag_unit});
    }
  }
  file_->add(record.step, unix_time_s, scalars);
}

void TensorBoardFile::evaluation(const EvalRecord& record, double unix_time_s) {
  FOURFOLD_EXPECT(file_.has_value());
  const std::array<io::EventScalar, 1> scalars{{{"validation/loss", record.loss}}};
  file_->add(record.step, unix_time_s, scalars);
}

}  // namespace fourfold::telemetry

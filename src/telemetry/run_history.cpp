// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "step_fields.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/telemetry/metrics_reader.hpp>
#include <fourfold/telemetry/run_history.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace fourfold::telemetry {
namespace {

constexpr std::size_t most_last_losses = 50;

template <class Row>
void add_row(Row row, std::deque<Row>& rows) {
  rows.push_back(std::move(row));
  if (rows.size() > RunHistory::most_rows) {
    rows.pop_front();
  }
}

}  // namespace

RunHistory::RunHistory(std::int64_t most_steps, std::int64_t most_evaluations)
    : validation(most_evaluations), curves_(step_fields.size(), StepCurve(most_steps)) {}

void RunHistory::start(const RunStart& run, double unix_time_s) {
  last_start = {run, unix_time_s};
  if (!first_start) {
    first_start = last_start;
    first_start->record.rank_hosts.clear();
    first_start->record.libraries.clear();
  }
  ++all_starts;
  add_row(Start{unix_time_s, run.mesh, run.checkpoint, run.first_step, run.steps,
                run.rank_hosts.size()},
          starts);
  last_end.reset();
}

void RunHistory::step(const StepRecord& record, double /*unix_time_s*/) {
  last_step = record;
  for (std::size_t i = 0; i < curves_.size(); ++i) {
    if (const auto* const number = std::get_if<double StepRecord::*>(&step_fields[i].number)) {
      curves_[i].add(record.step, record.**number);
    }
  }
  step_times.add(record.step_s);
  rates.add(record.tokens_per_s);
  if (record.mfu > 0) {
    utilizations.add(record.mfu);
  }
  if (record.loss_scale > 0) {
    skipped_steps = record.skipped_steps;
  }
  last_losses_.push_back(record.loss);
  if (last_losses_.size() > most_last_losses) {
    last_losses_.pop_front();
  }
}

void RunHistory::evaluation(const EvalRecord& record, double /*unix_time_s*/) {
  validation.add(record.step, record.loss);
  if (!(record.loss >= best_validation)) {
    best_validation = record.loss;
    best_validation_step = record.step;
  }
}

void RunHistory::checkpoint(const CheckpointRecord& record, double unix_time_s) {
  ++all_checkpoints;
  add_row(Timed<CheckpointRecord>{record, unix_time_s}, checkpoints);
}

void RunHistory::memory(const MemoryRecord& record, double unix_time_s) {
  last_memory = {record, unix_time_s};
}

void RunHistory::end(const RunEnd& record, double unix_time_s) {
  last_end = {record, unix_time_s};
}

const StepCurve& RunHistory::curve(double StepRecord::*number) const {
  const auto found = std::ranges::find(step_fields, StepField::Number(number), &StepField::number);
  FOURFOLD_EXPECT(found != step_fields.end());
  return curves_[std::distance(step_fields.begin(), found)];
}

double RunHistory::loss_at_end() const {
  if (last_losses_.empty()) {
    return std::nan("");
  }
  const auto tail = std::clamp<std::int64_t>(steps() / 10, 1, most_last_losses);
  double sum = 0;
  for (auto loss = last_losses_.end() - tail; loss != last_losses_.end(); ++loss) {
    sum += *loss;
  }
  return sum / static_cast<double>(tail);
}

RunHistory read_history(const std::filesystem::path& metrics_file) {
  try {
    MetricsReader reader(metrics_file);
    RunHistory history(reader.most_steps(), reader.most_evaluations());
    history.damaged_lines = reader.replay(history);
    return history;
  } catch (const UserError& error) {
    if (error.code() != ExitCode::config) {
      throw;
    }
    throw UserError(ExitCode::config,
                    format_message("{}; is this the log.dir of a run?", error.what()));
  }
}

}  // namespace fourfold::telemetry

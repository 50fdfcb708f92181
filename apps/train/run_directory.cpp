// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_directory.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/base/unique_handle.hpp>
#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/batch/chain.hpp>
#include <fourfold/comm/startup_watchdog.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/event_file.hpp>
#include <fourfold/io/fence.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/io/temporary_name.hpp>
#include <fourfold/plan/timeline_svg.hpp>
#include <fourfold/plan/timeline_trace.hpp>
#include <fourfold/telemetry/console.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/status_file.hpp>
#include <fourfold/train/stop_request.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

namespace fourfold::train_program {
namespace {

/// Whether a file is io::AtomicFile's temporary sibling of one that we write.
bool is_leftover(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  if (io::is_lease_on_its_way(telemetry::run_lease_name, name)) {
    return true;
  }
  const auto of = io::name_of_temporary(name);
  const auto ours = telemetry::RunFiles(file.parent_path()).replaced_whole();
  return of && (of->starts_with(io::event_file_prefix) ||
                std::ranges::count(ours, file.parent_path() / *of) > 0);
}

void sweep_leftovers(const std::filesystem::path& folder) {
  std::error_code ignored;  // they take room and do no harm
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (is_leftover(entry.path())) {
      std::ignore = io::remove_fenced(entry.path());
    } else if (comm::is_startup_rendezvous(entry.path())) {  // of ranks that were killed there
      std::ignore = io::remove_folder_fenced(entry.path());
    }
  }
}

/// Does something when the run really starts.
class OnStart : public telemetry::MetricSink {
 public:
  explicit OnStart(std::function<void()> action) : action_(std::move(action)) {}
  void start(const telemetry::RunStart& /*run*/, double /*unix_time_s*/) override { action_(); }

 private:
  std::function<void()> action_;
};

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code ignored;  // of one that is not there
  return std::filesystem::equivalent(a, b, ignored);
}

/// Of a start that another one would not mend, and that has changed nothing yet.
bool refuses_start(ExitCode code) {
  return code != ExitCode::internal && !telemetry::worth_retrying(code);
}

}  // namespace

RunDirectory::RunDirectory(const runfile::EffectiveConfig& effective, int rank, bool dry_run,
                           const std::filesystem::path& run_file)
    : effective_(effective),
      folder_(effective.config.log.dir),
      files_(folder_),
      rank_(rank),
      dry_run_(dry_run),
      writes_config_(!is_same_file(run_file, files_.config())),
      exit_before_unix_s_(telemetry::read_exit(files_.exit_status()).unix_s),
      metrics_(effective.config.log.every_steps),
      last_(std::make_shared<SharedLastState>()) {}

RunDirectory::~RunDirectory() {
  if (rank_ == 0) {
    log::set_sink({});
  }
}

void RunDirectory::open() {
  if (rank_ == 0) {
    telemetry::OutputsOfRun outputs{.config = writes_config_,
                                    .report = effective_.config.log.report};
    if (effective_.config.log.trace) {
      outputs.trace = io::OwnFile{.mark = plan::timeline_trace_mark,
                                  .maker = {},
                                  .is_older = plan::is_older_timeline_trace};
      outputs.timeline = io::OwnFile{
          .mark = plan::timeline_svg_mark, .maker = {}, .is_older = plan::is_older_timeline_svg};
    }
    telemetry::refuse_foreign_files(folder_, outputs);
  }
  if (rank_ == 0 && !dry_run_) {
    lease_ = telemetry::take_run_lease(folder_);
    metrics_.only_while([this] { return is_ours(); });
    metrics_.add(std::make_unique<OnStart>([this] {
      try_files();
      lease_->confirm();  // from here on no earlier start changes what this one writes
      lease_->check();
      telemetry::write_running(files_.exit_status());
    }));
  }
  // Before what can fail after that: the run has started then, and its end is to be told.
  metrics_.add(std::make_unique<LastStateSink>(last_));
  if (rank_ != 0) {
    return;
  }
  ProgressMode progress = effective_.config.log.progress;
  if (dry_run_ && progress == ProgressMode::none) {
    progress = ProgressMode::plain;  // what it is asked for is an answer
  }
  auto console = std::make_unique<telemetry::Console>(stderr, progress);
  log::set_sink(console->log_sink());
  metrics_.add(std::move(console));
  runfile::log_remarks(effective_);
  if (train::is_stop_asked_for(folder_)) {
    throw UserError(
        ExitCode::no_progress,
        format_message("{} exists (it asks for no more training); remove it to train on",
                       files_.stop().string()));
  }
  if (!dry_run_) {
    add_files();
  }
}

void RunDirectory::agree_on_holder(comm::Communicator& world) {
  holder_ = comm::broadcast_text(world, io::LeaseHolder::this_process().str(), 0);
}

bool RunDirectory::is_ours() const {
  return lease_ ? lease_->is_held() : !is_leased_to_another();
}

void RunDirectory::require_ours() const {
  if (lease_) {
    // One that was given back, as another rank has ended this start, is no other start's.
    if (!lease_->was_given_back()) {
      lease_->check();
    }
  } else if (is_leased_to_another()) {
    throw UserError(ExitCode::no_progress,
                    format_message("{}: another start of this run has taken over; this one writes "
                                   "nothing more",
                                   folder_.string()));
  }
}

bool RunDirectory::is_finished() const {
  const auto end = telemetry::read_exit(files_.exit_status()).end;  // written after FINISHED
  return end && end->code == ExitCode::finished && batch::is_finished(folder_, 0);
}

bool RunDirectory::may_write() const {
  std::error_code ignored;
  return std::filesystem::is_directory(folder_, ignored) && !io::is_place_in_step(folder_) &&
         is_ours();
}

bool RunDirectory::is_leased_to_another() const {
  const auto holder = telemetry::run_lease_holder(folder_);
  if (holder && !holder_.empty()) {
    return holder->str() != holder_;
  }
  // Rank 0 that has not got it yet knows of no other process that could have it for this start.
  return holder && (rank_ == 0 || !holder->is_of_start(io::LeaseHolder::this_process()));
}

void RunDirectory::add_files() {
  metrics_.add(std::make_unique<OnStart>([this] { take_over(); }));
  metrics_.add(std::make_unique<telemetry::MetricsFile>(files_.metrics()));
  metrics_.add(std::make_unique<telemetry::StatusFile>(files_.status()));
  if (effective_.config.log.tensorboard) {
    metrics_.add(std::make_unique<telemetry::TensorBoardFile>(folder_));
  }
}

void RunDirectory::try_files() const {
  telemetry::require_appendable(files_.metrics());
  for (const std::filesystem::path& file : {files_.config(), files_.exit_status(),
                                            files_.finished(), files_.status(), files_.report()}) {
    telemetry::require_replaceable(file);
  }
  std::array<FileDescriptor, 4> of_files_that_stay_open;
  for (FileDescriptor& each : of_files_that_stay_open) {
    each.reset(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  }
  constexpr std::size_t of_other_files_bytes = std::size_t{32} << 10;  // each a few KiB
  io::AtomicFile room(files_.config());
  room.write(config_text());
  room.write(std::string(of_other_files_bytes, '\n'));
  room.sync();  // and is not published
}

std::string RunDirectory::config_text() const {
  return fmt::format("{}\n{}", telemetry::effective_config_mark,
                     runfile::print_run_config(effective_));
}

void RunDirectory::take_over() {
  sweep_leftovers(folder_);
  std::ignore = io::remove_fenced(files_.finished());  // over at once, a run writes it again
  if (writes_config_) {
    io::AtomicFile config(files_.config());
    config.write(config_text());
    config.publish();
  } else {
    log::info(format_message("{} is the run file of this start and stays as it is",
                             files_.config().string()));
  }
}

void RunDirectory::finish(const telemetry::ExitStatus& status) {
  if (rank_ != 0) {
    return;
  }
  if (dry_run_) {
    end_metrics(metrics_, status);
    return;
  }
  require_ours();
  if (status.code == ExitCode::finished) {
    sweep_leftovers(folder_);  // a rank of an earlier start may have come after this one began
    // First: who finds exit.json finds this too.
    batch::write_finished(folder_, status.step.value_or(0));
  }
  write_run_end(folder_, status, metrics_, effective_.config.log.report);
}

void RunDirectory::fail(ExitCode code, const std::string& message) {
  if (!dry_run_ && !last_->get().step && refuses_start(code)) {
    lease_.reset();  // first: another start may come for it
    note_refusal(code, message);
    return;
  }
  if (!dry_run_ && !may_write()) {
    return;
  }
  try {
    metrics_.flush();  // so that the last step is known
  } catch (const std::exception& error) {
    log::warning(error.what());
  }
  const LastState last = last_->get();
  const telemetry::ExitStatus status{.code = code,
                                     .reason = message,
                                     .step = last.step,
                                     .checkpoint = last.checkpoint,
                                     .told_to_stop = train::StopSignals::was_asked()};
  const bool metrics_started = last.step.has_value();
  if (rank_ == 0 && metrics_started) {
    finish(status);
  } else if (!dry_run_ && (rank_ == 0 || !is_end_told())) {
    write_if_ours([&] { telemetry::write_exit_status(files_.exit_status(), status); });
  }
  lease_.reset();  // what ends now is ended without its destructors
}

bool RunDirectory::is_end_told() const {
  const telemetry::ExitRecord record = telemetry::read_exit(files_.exit_status());
  return record.end && record.unix_s != exit_before_unix_s_;
}

void RunDirectory::note_refusal(ExitCode code, const std::string& message) const {
  const BatchJob job = BatchJob::of_this_process();
  const batch::AttemptLog attempts(files_.attempts());
  const batch::AttemptRecords records = attempts.read();
  const batch::Attempt* const attempt = records.find(job);
  if (attempt == nullptr || attempt->end || attempt->refused ||
      !telemetry::may_append_events(files_.attempts())) {
    return;  // `fourfold job begin` has not noted it, or somebody has told already
  }
  const telemetry::ExitRecord left = telemetry::read_exit(files_.exit_status());
  if (batch::is_since(left, *attempt) && left.is_of(job)) {
    return;  // the attempt has made steps: what is refused here is a command beside it
  }
  const auto holder = telemetry::run_lease_holder(folder_);
  if (rank_ == 0 && holder && holder->is_of_start(io::LeaseHolder::this_process())) {
    return;  // that one is the attempt; after another rank it may be rank 0 of this start
  }
  attempts.refuse({.start = job, .unix_s = unix_time_s(), .code = code, .reason = message});
}

void RunDirectory::write_if_ours(const std::function<void()>& write) const {
  // Before the look: who takes over after it takes the place away.
  std::optional<io::FencedPlace> place;
  if (!lease_) {
    place.emplace(folder_, telemetry::run_lease_name);
  }
  if (is_ours()) {
    write();
  }
}

void RunDirectory::note_hang(const comm::HangDiagnosis& verdict, const std::string& report) const {
  if (dry_run_ || !is_ours()) {
    return;
  }
  try_to("tell of the hang",
         [&] { write_if_ours([&] { write_hang(folder_, verdict, report, last_->get()); }); });
}

}  // namespace fourfold::train_program

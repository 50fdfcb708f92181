// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/amount.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/batch/chain.hpp>
#include <fourfold/batch/launcher_words.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/line_follower.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace fourfold::batch {

namespace {

std::string step_text(std::optional<std::int64_t> step) {
  return step ? format_message("step {}", *step) : std::string("no checkpoint at all");
}

/// Starts at the end of the list that began where the next one would begin.
std::int64_t starts_without_progress(std::span<const Attempt* const> attempts,
                                     std::optional<std::int64_t> checkpoint_step) {
  const auto progressed =
      std::find_if(attempts.rbegin(), attempts.rend(),
                   [&](const Attempt* attempt) { return attempt->from_step != checkpoint_step; });
  return progressed - attempts.rbegin();
}

/// What a launcher returns for ranks that a signal ended before they could listen: people and batch
/// systems send these for "end soon".
bool is_stop_signal(int code) {
  constexpr int signalled = 128;
  return code == signalled + SIGTERM || code == signalled + SIGUSR1 || code == signalled + SIGUSR2;
}

bool is_ours(ExitCode code) {
  constexpr std::array<ExitCode, 6> codes{ExitCode::usage,    ExitCode::data_corrupt,
                                          ExitCode::internal, ExitCode::cannot_write,
                                          ExitCode::config,   ExitCode::no_progress};
  return std::ranges::count(codes, code) > 0;
}

/// Whether a job trains, or has trained, and was not merely refused.
bool has_trained(const telemetry::ExitRecord& record) {
  return record.says_running || has_ended_well(record);
}

/// The end of an attempt after whose begin `winner` has trained: this one was refused by its
/// lease, or has lost its own. What the launcher made of that may be anything.
AttemptEnd overtaken(const BatchJob& winner, int launcher_code, double unix_s) {
  return {.unix_s = unix_s,
          .code = is_ours(ExitCode{launcher_code}) ? ExitCode{launcher_code} : ExitCode::config,
          .reason = format_message("{} trains this run, or has since this one began (two would "
                                   "overwrite each other); let it train, or end it and submit anew",
                                   winner.id.empty() ? "a start outside of all jobs"
                                                     : format_message("job {}", winner.id))};
}

/// The end of a run whose processes took more memory than they may. Another start would take as
/// much.
AttemptEnd ended_for_memory(const MemoryKill& kill, const std::string& limit, double unix_s) {
  std::string reason = "killed for memory";
  if (!kill.nodes.empty()) {
    reason += format_message(" on {}", fmt::join(kill.nodes, ", "));
  }
  if (kill.taken_bytes && kill.limit_bytes) {
    reason += fmt::format(": its ranks there took {:.0f} MiB, and may take {:.0f} MiB",
                          mib(*kill.taken_bytes), mib(*kill.limit_bytes));
  } else if (kill.largest_task_bytes) {
    reason += fmt::format(": its ranks there took all that they may, the largest {:.0f} MiB",
                          mib(*kill.largest_task_bytes));
  } else {
    reason += ": its ranks there took all that they may";
  }
  return {
      .unix_s = unix_s,
      .code = ExitCode::config,
      .reason = format_message(
          "{} ({}); ask for more memory, or plan for less (`fourfold plan` says what a rank takes)",
          reason, limit.empty() ? "who set the limit is not known" : limit)};
}

/// Whether these are nodes, and not all that there are.
bool is_part(const std::vector<std::string>& some, int nodes) {
  return !some.empty() && std::ssize(some) < nodes;
}

std::string do_not_answer(const std::vector<std::string>& gone) {
  return format_message("{} {} not answer Slurm", fmt::join(gone, ", "),
                        gone.size() == 1 ? "does" : "do");
}

/// A rank has left without a word, and nobody in the run knows of a node that has.
bool is_of_lost_rank(const telemetry::ExitStatus& status) {
  return status.code == ExitCode::hang && status.bad_nodes.empty();
}

/// How an attempt ended that has left nothing but what the launcher says.
AttemptEnd end_without_a_word(bool says_running, int launcher_code, double unix_s, int nodes,
                              const LauncherSaid& said) {
  const std::string& launcher_words = said.words;
  const bool has_accounts = said.accounted.has_value();
  AttemptEnd end{.unix_s = unix_s, .code = ExitCode::node_fault, .retry = true};
  const NotStarted missing = not_started(launcher_words);
  if (!says_running && is_part(missing.nodes, nodes)) {
    end.reason = format_message(
        "fourfold could not be started on {} ({}), and could on the job's other nodes",
        fmt::join(missing.nodes, ", "),
        missing.why.empty() ? "it was not found there, or cannot be run" : missing.why);
    end.bad_nodes = missing.nodes;
    return end;
  }
  constexpr int stopped = static_cast<int>(ExitCode::stopped_saved);
  constexpr int cannot_execute = 126;
  constexpr int not_found = 127;
  if (says_running && is_ours(ExitCode{launcher_code})) {
    end.code = ExitCode{launcher_code};
    end.reason = "exit.json could not be written: the job's log says what happened";
    end.retry = false;
  } else if (says_running && is_part(said.nodes_gone, nodes)) {
    end.reason = "its ranks have ended without a word; " + do_not_answer(said.nodes_gone);
    end.bad_nodes = said.nodes_gone;
  } else if (says_running) {
    end.reason = format_message(
        "killed without a word ({}{})",
        launcher_code == 0 ? std::string("the launcher, too, or it lost its ranks")
                           : format_message("the launcher ended with code {}", launcher_code),
        has_accounts ? "" : "; whether for memory, no accounts say");
  } else if (const auto first = first_task_end(launcher_words);
             first && first->is_failure() && tells_exit_code(launcher_words, stopped)) {
    // srun tells the other ranks to stop then, and these were told before the first step.
    end.reason =
        format_message("a rank on {} ended before the first step ({})", first->node, first->how);
    if (nodes > 1) {
      end.bad_nodes = {first->node};
    }
  } else if (launcher_code == stopped || is_stop_signal(launcher_code) ||
             tells_exit_code(launcher_words, stopped)) {
    end.code = ExitCode::stopped_saved;  // of a finished run that was to go on, or told as it began
    end.reason = "stopped before the first step";
  } else if (const auto line = unmendable(launcher_words)) {
    end.code = ExitCode::config;
    end.reason = format_message(
        "the launcher starts nothing here ({}); correct --mpi, its options or the program's path",
        *line);
    end.retry = false;
  } else if (launcher_code == cannot_execute || launcher_code == not_found) {
    end.code = ExitCode::config;
    end.reason =
        "fourfold was not found on the nodes of the job, or cannot be run there (its folder is not "
        "mounted there, or another kind of processor); submit from where all nodes see it";
    end.retry = false;
  } else if (is_ours(ExitCode{launcher_code})) {
    end.code = ExitCode{launcher_code};
    end.reason = "refused: the job's log says why";
    end.retry = false;
  } else if (launcher_code == 0 && said.is_finished) {
    end.code = ExitCode::finished;
    end.reason = "the run is finished: nothing was left to do";
    end.retry = false;
  } else if (launcher_code == 0) {
    end.code = ExitCode::config;
    end.reason =
        "the launcher ended with 0 and has started nothing, or a program that is not fourfold; "
        "correct --mpi (which may be \"list\" or \"help\"), its options or the program's path";
    end.retry = false;
  } else {
    end.reason = format_message("never started (the launcher ended with code {})", launcher_code);
  }
  return end;
}

/// By the words, which are there at once, and the accounting, which knows what the largest took.
std::optional<MemoryKill> memory_kill(const LauncherSaid& said, const Attempt& attempt) {
  std::optional<MemoryKill> kill = killed_for_memory(said.words);
  const auto accounted =
      said.accounted ? killed_for_memory(*said.accounted, attempt) : std::nullopt;
  if (!kill) {
    return accounted;
  }
  if (accounted) {
    kill->largest_task_bytes = accounted->largest_task_bytes;
  }
  return kill;
}

/// A state of a job, and what it means.
std::string words_of_slurm(std::string_view state) {
  const std::string_view meaning = state == "NODE_FAIL"   ? ": one of its nodes failed"
                                   : state == "TIMEOUT"   ? ": its time limit was over"
                                   : state == "PREEMPTED" ? ": another job took its nodes"
                                                          : "";
  return format_message("Slurm says {}{}", state, meaning);
}

/// How a start of which nobody has noted an end came to it.
std::string why_not_noted(const std::optional<AccountedStart>& accounted) {
  if (!accounted || accounted->state.empty() || accounted->state == "RUNNING") {
    return "the node of its batch script is gone, or the script was killed";
  }
  return words_of_slurm(accounted->state);
}

}  // namespace

std::optional<UserError> refusal(std::span<const Attempt> attempts, const Attempt& next,
                                 const ChainLimits& limits) {
  std::vector<const Attempt*> links;
  for (const Attempt& attempt : attempts) {
    const bool was_mended =
        attempt.start.is_same_launch(next.start) && attempt.end && !attempt.end->retry;
    if (attempt.start.chain == next.start.chain && !was_mended) {
      links.push_back(&attempt);
    }
  }
  if (links.empty()) {
    return std::nullopt;
  }
  const std::optional<AttemptEnd>& last = links.back()->end;
  // A STOP file is for a person to remove, and then the run goes on; the start itself looks for it.
  if (last && !last->retry && last->code != ExitCode::finished &&
      last->code != ExitCode::stopped_saved) {
    return UserError(last->code,
                     format_message("job {} of this chain ended with code {} ({}); another start "
                                    "would not mend that: see to it, then submit anew",
                                    links.back()->start.id, last->code, last->reason));
  }
  const auto is_first_launch = [](const Attempt* one) { return one->start.launch == 0; };
  const auto starts = std::ranges::count_if(links, is_first_launch);
  if (limits.most_starts > 0 && next.start.launch == 0 && starts >= limits.most_starts) {
    return UserError(
        ExitCode::no_progress,
        format_message("this chain has started {} times (as often as FOURFOLD_MOST_STARTS allows); "
                       "see whether it gets on, then submit anew",
                       starts));
  }
  const std::int64_t stuck = starts_without_progress(links, next.from_step);
  if (limits.most_without_progress > 0 && stuck >= limits.most_without_progress) {
    return UserError(ExitCode::no_progress,
                     format_message("the last {} starts of this chain got no further than {} (job "
                                    "{} ended: {}); see to the reason, then submit anew",
                                    stuck, step_text(next.from_step), links.back()->start.id,
                                    last ? last->reason : std::string("without a word")));
  }
  return std::nullopt;
}

const Attempt* newest_of_chain(std::span<const Attempt> attempts, const std::string& chain) {
  const auto found = std::find_if(attempts.rbegin(), attempts.rend(),
                                  [&](const Attempt& one) { return one.start.chain == chain; });
  return found == attempts.rend() ? nullptr : &*found;
}

bool is_superseded(std::span<const Attempt> attempts, const Attempt& attempt) {
  const auto own = std::find_if(attempts.rbegin(), attempts.rend(), [&](const Attempt& one) {
    return one.start.is_same_launch(attempt.start);
  });
  return std::any_of(attempts.rbegin(), own, [&](const Attempt& later) {
    return later.start.chain == attempt.start.chain;
  });
}

bool is_of_earlier_start(std::span<const Attempt> attempts, const Attempt& attempt,
                         const BatchJob& by) {
  const auto own = std::ranges::find_if(
      attempts, [&](const Attempt& one) { return one.start.is_same_launch(attempt.start); });
  return std::any_of(attempts.begin(), own, [&](const Attempt& one) {
    return one.start.chain == attempt.start.chain && one.start.is_same_launch(by);
  });
}

bool has_ended_well(const telemetry::ExitRecord& record) {
  return record.end &&
         (record.end->code == ExitCode::finished || record.end->code == ExitCode::stopped_saved);
}

bool is_since(const telemetry::ExitRecord& left, const Attempt& attempt) {
  return left.unix_s && left.unix_s != attempt.exit_unix_s;
}

AttemptEnd end_of(const telemetry::ExitRecord& left, const Attempt& attempt, const BatchJob& own,
                  int launcher_code, double unix_s, const LauncherSaid& said) {
  const bool is_new = is_since(left, attempt);
  const bool is_own = is_new && left.is_of(own);
  const bool is_good = is_own && has_ended_well(left);
  if (const auto kill = memory_kill(said, attempt); kill && !is_good && !attempt.refused) {
    return ended_for_memory(*kill, said.memory_limit, unix_s);
  }
  if (is_own && left.end) {
    return {.unix_s = unix_s,
            .code = left.end->code,
            .reason = left.end->reason,
            .step = left.end->step,
            .retry = telemetry::worth_retrying(left.end->code) && !left.end->hold,
            .bad_nodes = left.end->bad_nodes};
  }
  if (attempt.refused) {
    return {.unix_s = unix_s, .code = attempt.refused->code, .reason = attempt.refused->reason};
  }
  if (is_new && !is_own && has_trained(left)) {
    return overtaken(left.by, launcher_code, unix_s);
  }
  return end_without_a_word(is_own && left.says_running, launcher_code, unix_s, attempt.nodes,
                            said);
}

AttemptEnd end_not_noted(const telemetry::ExitRecord& left, const Attempt& attempt,
                         double last_word_unix_s, const std::optional<AccountedStart>& accounted) {
  const double ended_s = accounted ? accounted->ended_unix_s.value_or(0) : 0;
  const double until_s = std::max({last_word_unix_s, attempt.began_unix_s, ended_s});
  const BatchJob own = attempt.start;
  const bool is_own = is_since(left, attempt) && left.is_of(own);
  if ((is_own && left.end) || attempt.refused) {
    const double unix_s = is_own ? left.unix_s.value_or(until_s) : attempt.refused->unix_s;
    AttemptEnd end = end_of(left, attempt, own, 0, unix_s);
    if (is_own && left.end && is_of_lost_rank(*left.end) && accounted &&
        accounted->state == "NODE_FAIL") {
      end.code = ExitCode::node_fault;
      end.reason += "; " + words_of_slurm(accounted->state);
    }
    return end;
  }
  if (const auto kill = memory_kill({.accounted = accounted}, attempt)) {
    return ended_for_memory(*kill, "", until_s);
  }
  return {.unix_s = until_s,
          .code = ExitCode::node_fault,
          .reason = format_message("no end was noted when the next start of the run began ({}){}",
                                   why_not_noted(accounted),
                                   is_own ? "" : "; it had not come to its first step"),
          .retry = true};
}

AttemptEnd end_before_begin(const AccountedStart& job) {
  return {.unix_s = *job.ended_unix_s,
          .code = ExitCode::node_fault,
          .reason = format_message("the job was over before its batch script could begin ({})",
                                   words_of_slurm(job.state)),
          .retry = true};
}

telemetry::ExitStatus stopped_by_slurm(telemetry::ExitStatus status, std::string_view why) {
  if (status.code == ExitCode::stopped_saved && !status.hold) {
    status.reason = telemetry::stop_reason(status.checkpoint.value_or(""), why);
  }
  return status;
}

telemetry::ExitStatus lost_with_nodes(telemetry::ExitStatus status,
                                      const std::vector<std::string>& gone, int nodes) {
  if (is_of_lost_rank(status) && is_part(gone, nodes)) {
    status.code = ExitCode::node_fault;
    status.reason += "; " + do_not_answer(gone);
    status.bad_nodes = gone;
  }
  return status;
}

void write_finished(const std::filesystem::path& log_dir, std::int64_t step) {
  io::AtomicFile file(telemetry::RunFiles(log_dir).finished());
  file.write(fmt::format("step {}\n", step));
  file.publish();
}

bool is_finished(const std::filesystem::path& log_dir, std::int64_t steps) {
  constexpr std::uint64_t most_bytes = 4096;
  std::error_code ignored;  // of a folder that cannot be looked at nothing is known
  if (!std::filesystem::exists(telemetry::RunFiles(log_dir).finished(), ignored)) {
    return false;
  }
  std::istringstream file(
      io::text_if_readable(telemetry::RunFiles(log_dir).finished(), most_bytes).value_or(""));
  std::string word;
  std::int64_t step = 0;
  return !(file >> word >> step) || word != "step" || step >= steps;
}

}  // namespace fourfold::batch

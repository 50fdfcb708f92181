// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>

namespace {

using fourfold::ExitCode;
namespace job = fourfold::job;

const char* const more_help = R"(
OUTPUT
  begin  "start": start the run now; on the next lines how many tasks ("all" of the job, or a
         number) and, one on each line, what `fourfold train` gets besides: "--set" and a value
         (with mesh.dp = "auto" the mesh is chosen for what the job has), or "--run-file", RUN_FILE
         and the copy that all starts of a chain take in its place, in log.dir/submitted.
         "finished": there is nothing left to do. "queue": no mesh fits on the nodes of a restart
         inside the job (FOURFOLD_LAUNCH); another job may have more. "superseded", and 93: Slurm
         has started the job twice, and the first of these lives. When it must not be started:
         nothing, with the reason on stderr and in attempts.jsonl, and the exit code. Nothing else
         of the run changes
  end    "again", "finished" or "stop"; after "again", nodes that failed: leave them out.
         "superseded": the chain has gone on without this start; do nothing. Its exit code is
         that of the run

ENVIRONMENT
  SLURM_JOB_ID, SLURM_RESTART_COUNT, SLURM_JOB_NUM_NODES  noted with each start
  FOURFOLD_LAUNCH  how often this start of the job has launched the run before: 1 and more of a
                   restart inside the job
  FOURFOLD_TASKS_PER_NODE, SLURM_NTASKS, SLURM_MEM_PER_NODE, SLURM_MEM_PER_CPU
                                                          what the mesh is chosen for
  FOURFOLD_CHAIN  a name of your choice, in all jobs that are to go on with each other; an earlier
                  job of the chain that ended for good keeps the later ones from starting.
                  Default: each job is its own
)";

/// What both verbs take: the arguments of `fourfold train`, of which --set and --allow-change
/// count.
void describe(CLI::App& verb, job::Request& request) {
  verb.add_option("RUN_FILE", request.run_file, "The run file (TOML)")->required();
  verb.add_option("--kept-run-file", request.kept_run_file,
                  "The copy in log.dir/submitted that this job is known to go on with: read in "
                  "place of RUN_FILE")
      ->type_name("FILE");
  verb.add_option("--no-next", request.no_next,
                  "Why no later job of the chain is in the queue; `fourfold status` shows it")
      ->type_name("TEXT");
  fourfold::program::add_repeatable_option(
      verb, "--set", request.overrides,
      "Override a key of the run file; may be given several times", "KEY=VALUE");
  fourfold::program::add_repeatable_option(
      verb, "--allow-change", request.allowed_changes,
      "A key that may differ from the checkpoint's, where the run is finished", "KEY");
  verb.allow_extras();  // the other options of train
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "What a batch script asks before it starts a run and after it: whether another start makes "
      "sense. Each start and its end are noted in attempts.jsonl in the run's directory.",
      "fourfold job"};
  command.require_subcommand(1);
  job::Request request;
  CLI::App* const begin = command.add_subcommand("begin", "Note a start, unless it is refused");
  describe(*begin, request);
  begin
      ->add_option("--most-starts", request.limits.most_starts,
                   "Refuse when the chain has started so often (0: no limit)")
      ->envname("FOURFOLD_MOST_STARTS")
      ->check(fourfold::program::whole_number(0))
      ->capture_default_str();
  begin
      ->add_option("--stuck-after", request.limits.most_without_progress,
                   "Refuse when so many starts went on from the same checkpoint (0: no limit)")
      ->envname("FOURFOLD_STUCK_AFTER")
      ->check(fourfold::program::whole_number(0))
      ->capture_default_str();
  begin->add_flag("--later-start", request.is_later,
                  "An earlier start of this job or chain has begun, and where its copy of the run "
                  "file is is not known: it is looked for in RUN_FILE's log.dir, and nothing is "
                  "started where none began (85): the file may be another run's by now");
  begin->add_flag("--tell-files", request.tell_files,
                  "After \"start\", also \"--exit-file\" and where the run will tell its end, and "
                  "\"--node-local-dir\" and where nodes keep steps of their own, if they do");
  CLI::App* const end = command.add_subcommand("end", "Note how it ended");
  describe(*end, request);
  CLI::Option* const launcher_code =
      end->add_option("--launcher-code", request.launcher_code, "What srun or mpiexec ended with");
  CLI::Option* const stopped_by =
      end->add_option(
             "--stopped-by", request.stopped_by,
             "The signal that came before anything was launched: the run is to go on later")
          ->type_name("SIGNAL")
          ->excludes(launcher_code);
  end->add_option("--launcher-words", request.launcher_words,
                  "What it said on standard error, and slurmstepd: that a plugin cannot be loaded "
                  "or a program is not there ends the chain, as does a kill for memory; nodes "
                  "without the program are left out")
      ->type_name("TEXT");
  end->add_option("--memory-limit", request.memory_limit,
                  "What the job may take of a node's memory and who has set that, for the reason "
                  "of a kill for memory")
      ->type_name("TEXT");
  end->add_option("--next", request.next, "The job in the queue that is to go on with the run")
      ->type_name("JOB");
  end->add_flag("--preempted", request.preempted,
                "The scheduler took the nodes for another job; exit.json says so then");
  end->add_flag("--time-limit", request.time_limit,
                "The scheduler ended the job at its time limit; exit.json says so then")
      ->excludes("--preempted");
  end->add_option("--nodes-gone", request.nodes_gone,
                  "Nodes of the job that do not answer Slurm, with commas: a rank that has left "
                  "without a word has gone with its node then, which is left out")
      ->type_name("NODES")
      ->delimiter(',');
  command.footer(
      "\nEXAMPLES\n"
      "  fourfold help job begin                     the page of a verb, with its examples\n" +
      std::string(more_help));
  begin->footer(
      "\nEXAMPLES\n"
      "  answer=$(fourfold job begin run.toml) || exit\n"
      "  fourfold job begin run.toml --most-starts 20 --stuck-after 3\n");
  end->footer(
      "\nEXAMPLES\n"
      "  fourfold job end run.toml --launcher-code \"$code\"\n"
      "  fourfold job end run.toml --stopped-by TERM\n");
  return fourfold::program::run("fourfold job", [&] {
    if (const auto stop = fourfold::program::parse(command, argc, argv)) {
      return *stop;
    }
    if (end->parsed() && launcher_code->count() + stopped_by->count() == 0) {
      throw fourfold::UserError(
          ExitCode::usage,
          "job end: how the launcher ended is not said; give --launcher-code or --stopped-by");
    }
    fourfold::program::enable_verbose_log();
    request.other_words = begin->parsed() ? begin->remaining() : end->remaining();
    return begin->parsed() ? job::begin(request) : job::end(request);
  });
}

// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/batch/submission.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <regex>
#include <string_view>

namespace fourfold::batch {
namespace {

/// sbatch splits these lines by rules of its own: nothing that it could take for more than a word.
/// What Slurm reads in a line of #SBATCH as it stands there: a "#" begins a comment, anywhere.
bool is_one_word(std::string_view option) {
  const auto is_plain = [](char c) {
    return '!' <= c && c <= '~' && c != '\'' && c != '"' && c != '#';
  };
  return !option.empty() && std::ranges::all_of(option, is_plain);
}

std::string line_of(std::string_view option) {
  if (!is_one_word(option)) {
    throw UserError(ExitCode::usage,
                    format_message("\"{}\" cannot stand in a line of #SBATCH (blanks, quotes, # "
                                   "and other than ASCII are not safe there); choose another value",
                                   option));
  }
  return fmt::format("#SBATCH {}\n", option);
}

/// How long before the limit Slurm warns. It looks at the clock every half minute, and warns at
/// once when the limit is nearer than that.
std::int64_t warning_s(const std::string& time) {
  constexpr std::int64_t usual_s = 120;
  return time.empty() ? usual_s : std::min(usual_s, time_limit_s(time) / 4);
}

std::string resources(const Submission& job) {
  if (job.name.find(',') != std::string::npos) {
    throw UserError(ExitCode::usage,
                    format_message("--name={}: Slurm takes a comma for the end of a name (squeue "
                                   "--name, scancel --name); choose another",
                                   job.name));
  }
  std::string text = line_of("--job-name=" + job.name);
  text += line_of("--nodes=" + job.nodes.str());
  if (job.nodes.least < job.nodes.most) {
    // Slurm keeps the number of tasks of a job's first start, and with a number of them on each
    // node would not start it again on fewer nodes. The script starts the tasks.
    text += line_of(fmt::format("--mincpus={}", job.tasks_per_node * job.cpus_per_task));
  } else {
    text += line_of(fmt::format("--ntasks-per-node={}", job.tasks_per_node));
    text +=
        job.cpus_per_task == 1 ? "" : line_of(fmt::format("--cpus-per-task={}", job.cpus_per_task));
  }
  const std::array<std::pair<const char*, const std::string*>, 3> named{
      {{"--time=", &job.time}, {"--partition=", &job.partition}, {"--account=", &job.account}}};
  for (const auto& [option, value] : named) {
    text += value->empty() ? "" : line_of(option + *value);
  }
  return text;
}

/// Options of sbatch that are not the user's to add, and what to do instead. Slurm takes the begin
/// of a long name for the whole, as long as no other begins so.
struct Reserved {
  std::string_view long_name;
  std::string_view shortest;  ///< of it, with its dashes
  std::string_view remedy;
  bool of_chain = false;  ///< only of a chain
};
constexpr std::array reserved_options{
    Reserved{"--output", "--ou", "the run's log goes into log.dir"},
    Reserved{"--job-name", "--job", "give --name"},
    Reserved{"--nodes", "--node", "give --nodes"},
    Reserved{"--ntasks", "--ntasks", "give --nodes and --tasks-per-node"},
    Reserved{"--ntasks-per-node", "--ntasks-per-n", "give --tasks-per-node"},
    Reserved{"--cpus-per-task", "--cpus-per-t", "give --cpus-per-task"},
    Reserved{"--time", "--time", "give --time"},
    Reserved{"--partition", "--pa", "give --partition"},
    Reserved{"--account", "--acco", "give --account"},
    Reserved{"--tasks-per-node", "--ta", "give --tasks-per-node"},
    Reserved{"--chdir", "--ch", "submit from the folder that the run file's paths are meant from"},
    Reserved{"--workdir", "--work",
             "submit from the folder that the run file's paths are meant from"},
    Reserved{"--wait", "--wait", "each job of a chain would wait for the next one", true},
    Reserved{"--test-only", "--test", "without --go nothing is submitted"},
    Reserved{"--array", "--ar", "one run is one job; array.sbatch makes several"},
    Reserved{"--dependency", "--dep", "the jobs of a chain wait for each other", true},
    Reserved{"--requeue", "--req", "a chain goes on by its next job", true}};

/// Whether `option` is that one: "--time=5", "--time".
bool is_option(std::string_view option, const Reserved& one) {
  const std::string_view word = option.substr(0, option.find('='));
  return word.starts_with(one.shortest) && one.long_name.starts_with(word);
}

/// The batch scripts note these in the comment of a job.
constexpr std::array<std::string_view, 2> marks_in_comment{"fourfold-run-file=",
                                                           "fourfold-not-run="};

void refuse_contradiction(const Submission& job, const std::string& option) {
  if (job.requeue && option.starts_with("--no-req")) {
    throw UserError(ExitCode::usage,
                    format_message("--sbatch={} and --requeue contradict each other (Slurm would "
                                   "refuse to take the job back); leave one of them out",
                                   option));
  }
}

void refuse_marks(const std::string& option) {
  for (const std::string_view mark : marks_in_comment) {
    if (option.find(mark) != std::string::npos) {
      throw UserError(ExitCode::usage,
                      format_message("--sbatch={}: {} in a job's comment is how its scripts note "
                                     "what they go on with; choose another comment",
                                     option, mark));
    }
  }
}

/// What the user adds stands last, so that it counts: of two lines Slurm takes the second.
std::string extra_options(const Submission& job) {
  std::string text;
  for (const std::string& option : job.more) {
    if (option.size() < 4 || !option.starts_with("--")) {
      throw UserError(
          ExitCode::usage,
          format_message("--sbatch={} is no long option of sbatch; write it as --sbatch=--qos=high",
                         option));
    }
    for (const Reserved& one : reserved_options) {
      if (is_option(option, one) && (job.chain > 0 || !one.of_chain)) {
        throw UserError(ExitCode::usage,
                        format_message("--sbatch={} is what fourfold submit sets itself; leave it "
                                       "out ({}), or change the script that it prints",
                                       option, one.remedy));
      }
    }
    refuse_marks(option);
    refuse_contradiction(job, option);
    text += line_of(option);
  }
  return text;
}

/// Where Slurm would read something else than the name that stands there: a backslash, too.
bool can_be_output(const std::filesystem::path& folder) {
  return is_one_word(folder.string()) && folder.string().find('\\') == std::string::npos;
}

/// As Slurm writes file names: "%%" is a "%".
std::string output_pattern(const Submission& job) {
  std::string folder = can_be_output(job.log_dir) ? (job.log_dir / "").string() : "";
  for (std::size_t at = folder.find('%'); at != std::string::npos; at = folder.find('%', at + 2)) {
    folder.insert(at, 1, '%');
  }
  return folder + "%x-%j.log";
}

std::string behaviour(const Submission& job) {
  std::string text = line_of("--output=" + output_pattern(job));
  text += line_of("--open-mode=append");
  text += line_of(fmt::format("--signal=B:USR2@{}", warning_s(job.time)));
  if (job.restarts_inside > 0) {
    text += line_of("--no-kill");  // of its steps the script sees to that they are ended
  }
  if (job.chain > 0) {
    text += line_of("--dependency=singleton");
    text += line_of("--no-requeue");
  } else {
    text += line_of("--requeue");
  }
  return text;
}

std::string exported(const char* name, const std::string& value) {
  return value.empty() ? "" : fmt::format("export {}={}\n", name, shell_word(value));
}

}  // namespace

std::string NodeRange::str() const {
  return least == most ? fmt::format("{}", least) : fmt::format("{}-{}", least, most);
}

NodeRange node_range_of(const std::string& text) {
  NodeRange range{0, 0};
  const char* const end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, range.least);
  range.most = range.least;
  if (error == std::errc{} && at != end && *at == '-') {
    std::tie(at, error) = [&] {
      const auto result = std::from_chars(at + 1, end, range.most);
      return std::pair(result.ptr, result.ec);
    }();
  }
  if (error != std::errc{} || at != end || range.least < 1 || range.most < range.least) {
    throw UserError(ExitCode::usage,
                    format_message("--nodes={} is no number of nodes (a number, or the least and "
                                   "the most); write it as 4 or as 2-4",
                                   text));
  }
  return range;
}

std::int64_t time_limit_s(const std::string& text) {
  static const std::regex form(R"((?:(\d{1,4})-)?(\d{1,6})(?::(\d{1,2}))?(?::(\d{1,2}))?)");
  std::smatch parts;
  const auto number = [&](std::size_t i) {
    return parts[i].matched ? std::stoll(parts[i].str()) : 0LL;
  };
  std::int64_t seconds = 0;
  if (std::regex_match(text, parts, form)) {
    if (parts[1].matched) {  // D-H, D-H:M, D-H:M:S
      seconds = ((number(1) * 24 + number(2)) * 60 + number(3)) * 60 + number(4);
    } else if (parts[4].matched) {  // H:M:S
      seconds = (number(2) * 60 + number(3)) * 60 + number(4);
    } else {  // M, M:S
      seconds = number(2) * 60 + number(3);
    }
  }
  if (seconds <= 0) {
    throw UserError(ExitCode::usage,
                    format_message("--time={} is no time limit of Slurm (minutes, or one of M:S, "
                                   "H:M:S, D-H, D-H:M, D-H:M:S); write it as 8:00:00",
                                   text));
  }
  return seconds;
}

std::filesystem::path log_of(const Submission& job, const std::string& number) {
  const std::string file = fmt::format("{}-{}.log", job.name, number);
  return can_be_output(job.log_dir) ? job.log_dir / file : std::filesystem::path(file);
}

std::string script_of(const Submission& job) {
  std::string text =
      fmt::format("{}{}; sbatch takes it as it is. The folder of its log has to be there.\n",
                  script_opening, script_mark);
  text += resources(job);
  text += behaviour(job);
  text += extra_options(job);
  text += exported("FOURFOLD", job.program.string());
  text += exported("FOURFOLD_SLURM", job.scripts.string());
  text += exported("FOURFOLD_SITE", job.site);
  text += exported("FOURFOLD_MPI", job.mpi);
  if (job.nodes.least < job.nodes.most) {
    text += exported("FOURFOLD_NODES", job.nodes.str());
    text += exported("FOURFOLD_TASKS_PER_NODE", fmt::format("{}", job.tasks_per_node));
    text += exported("SRUN_CPUS_PER_TASK", fmt::format("{}", job.cpus_per_task));
  }
  if (job.restarts_inside > 0) {
    text += exported("FOURFOLD_RESTARTS_INSIDE", fmt::format("{}", job.restarts_inside));
  }
  if (job.chain > 0) {
    text += exported("FOURFOLD_MOST_STARTS", fmt::format("{}", job.chain));
    text += exported("FOURFOLD_SCRIPT", "self");
  } else if (job.requeue) {
    text += exported("FOURFOLD_REQUEUE", "1");
  }
  text += "\n" + job.functions + "\n";
  std::string needed = "\"$FOURFOLD_SLURM/job.bash\"";
  std::string change_folder;
  if (!job.work_folder.empty()) {
    const std::string folder = shell_word(job.work_folder.string());
    needed += " " + folder;
    change_folder = fmt::format(
        "cd -- {} || exit 78 # the paths in the run file are meant from here\n", folder);
  }
  text += "needs " + needed + "\n" + change_folder;
  text += fmt::format("exec bash \"$FOURFOLD_SLURM/{}.sbatch\" {}",
                      job.chain > 0 ? "chain" : "train", shell_word(job.run_file));
  for (const std::string& argument : job.arguments) {
    text += " " + shell_word(argument);
  }
  return text + "\n";
}

}  // namespace fourfold::batch

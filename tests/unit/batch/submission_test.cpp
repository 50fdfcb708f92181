// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/batch/submission.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <cstdio>
#include <memory>
#include <string>

using namespace fourfold;
using namespace fourfold::batch;
using Catch::Matchers::ContainsSubstring;

namespace {

Submission plain() {
  return {.program = "/opt/bin/fourfold",
          .scripts = "/opt/share/slurm",
          .functions = "needs() { :; }\n",
          .script = "/runs/a/submit.sbatch",
          .log_dir = "/runs/a",
          .run_file = "/home/run.toml",
          .arguments = {},
          .name = "fourfold-a",
          .nodes = {2, 4},
          .tasks_per_node = 8};
}

/// What a shell that runs the script hands over: its words, one on each line.
std::string words_of(const Submission& job) {
  std::string script = script_of(job);
  const std::string handing_over = "exec bash ";
  const std::size_t at = script.rfind(handing_over);
  REQUIRE(at != std::string::npos);
  const std::string shown =
      script.substr(0, at) + "printf '<%s>\\n' " + script.substr(at + handing_over.size());
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::tmpfile(), std::fclose);
  std::fputs(shown.c_str(), in.get());
  std::fflush(in.get());
  std::string command = "bash /dev/fd/" + std::to_string(::fileno(in.get()));
  std::rewind(in.get());
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(::popen(command.c_str(), "r"),
                                                            ::pclose);
  std::string text;
  std::array<char, 512> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), out.get()) != nullptr) {
    text += buffer.data();
  }
  return text;
}

}  // namespace

TEST_CASE("ranges of nodes are read as sbatch reads them", "[submission]") {
  CHECK(node_range_of("4") == NodeRange{4, 4});
  CHECK(node_range_of("2-4") == NodeRange{2, 4});
  CHECK(node_range_of("2-4").str() == "2-4");
  CHECK(node_range_of("3-3").str() == "3");
  for (const char* wrong :
       {"", "0", "-2", "4-2", "2-", "two", "2-4-6", "2,4", " 2", "99999999999"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(node_range_of(wrong), UserError);
  }
}

TEST_CASE("a script goes to the folder from which the run file's paths are read", "[submission]") {
  Submission job = plain();
  CHECK(script_of(job).find("\ncd ") == std::string::npos);
  job.work_folder = "/home/it's mine";
  CHECK_THAT(script_of(job), ContainsSubstring("\ncd -- '/home/it'\\''s mine' || exit 78 #"));
}

TEST_CASE("a script looks for what it needs before it hands over", "[submission]") {
  Submission job = plain();
  CHECK_THAT(
      script_of(job),
      ContainsSubstring("\n\nneeds() { :; }\n\nneeds \"$FOURFOLD_SLURM/job.bash\"\nexec bash "));
  job.work_folder = "/home/it's mine";
  CHECK_THAT(
      script_of(job),
      ContainsSubstring("\nneeds \"$FOURFOLD_SLURM/job.bash\" '/home/it'\\''s mine'\ncd -- "));
}

TEST_CASE("the log lies in log.dir where sbatch can be told so", "[submission]") {
  Submission job = plain();
  const auto output = [&] {
    const std::string script = script_of(job);
    const std::size_t at = script.find("--output=") + 9;
    return script.substr(at, script.find('\n', at) - at);
  };
  CHECK(output() == "/runs/a/%x-%j.log");
  CHECK(log_of(job, "7") == "/runs/a/fourfold-a-7.log");
  job.log_dir = "/runs/lr%3e%%j";  // Slurm would read numbers there
  CHECK(output() == "/runs/lr%%3e%%%%j/%x-%j.log");
  CHECK(log_of(job, "7") == "/runs/lr%3e%%j/fourfold-a-7.log");
  for (const char* folder : {"/runs/two words", "/runs/back\\slash", "/runs/\"a\"", "/runs/a#2"}) {
    job.log_dir = folder;
    CHECK(output() == "%x-%j.log");
    CHECK(log_of(job, "7") == "fourfold-a-7.log");
  }
}

TEST_CASE("time limits are read as Slurm reads them", "[submission]") {
  CHECK(time_limit_s("90") == 5400);
  CHECK(time_limit_s("1:30") == 90);
  CHECK(time_limit_s("8:00:00") == 28800);
  CHECK(time_limit_s("2-12") == 216000);
  CHECK(time_limit_s("2-12:30") == 217800);
  CHECK(time_limit_s("2-12:30:15") == 217815);
  for (const char* wrong :
       {"", "0", "0:00", "8h", "1:2:3:4", "-1", "1-", "infinite", "8:00:00\n"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(time_limit_s(wrong), UserError);
  }
}

TEST_CASE("a script asks for what was asked", "[submission]") {
  Submission job = plain();
  job.nodes = {4, 4};
  job.time = "8:00:00";
  job.partition = "gpu";
  job.account = "lab";
  job.cpus_per_task = 4;
  job.more = {"--qos=high"};
  const std::string script = script_of(job);
  for (const char* line :
       {"#!/bin/bash\n", "\n#SBATCH --job-name=fourfold-a\n", "\n#SBATCH --nodes=4\n",
        "\n#SBATCH --ntasks-per-node=8\n", "\n#SBATCH --cpus-per-task=4\n",
        "\n#SBATCH --time=8:00:00\n", "\n#SBATCH --partition=gpu\n", "\n#SBATCH --account=lab\n",
        "\n#SBATCH --qos=high\n", "\n#SBATCH --signal=B:USR2@120\n", "\n#SBATCH --requeue\n",
        "\n#SBATCH --output=/runs/a/%x-%j.log\n"}) {
    CHECK_THAT(script, ContainsSubstring(line));
  }
  // sbatch stops to read its lines at the first command.
  CHECK(script.rfind("#SBATCH") < script.find("export"));
  CHECK(script.find("FOURFOLD_SCRIPT") == std::string::npos);
  CHECK(script.find("--dependency") == std::string::npos);
  CHECK(script.find("FOURFOLD_NODES") == std::string::npos);
}

TEST_CASE("of a range of nodes the job's tasks are not Slurm's to count", "[submission]") {
  Submission job = plain();
  job.cpus_per_task = 2;
  const std::string script = script_of(job);
  for (const char* line :
       {"\n#SBATCH --nodes=2-4\n", "\n#SBATCH --mincpus=16\n", "\nexport FOURFOLD_NODES='2-4'\n",
        "\nexport FOURFOLD_TASKS_PER_NODE='8'\n", "\nexport SRUN_CPUS_PER_TASK='2'\n"}) {
    CHECK_THAT(script, ContainsSubstring(line));
  }
  CHECK(script.find("ntasks") == std::string::npos);
}

TEST_CASE("the warning before a short limit is not longer than that", "[submission]") {
  Submission job = plain();
  job.time = "1";
  CHECK_THAT(script_of(job), ContainsSubstring("--signal=B:USR2@15\n"));
  job.time = "";
  CHECK_THAT(script_of(job), ContainsSubstring("--signal=B:USR2@120\n"));
}

TEST_CASE("a chain submits itself again, a requeued job does not", "[submission]") {
  Submission job = plain();
  job.chain = 5;
  const std::string chain = script_of(job);
  for (const char* line :
       {"\n#SBATCH --dependency=singleton\n", "\n#SBATCH --no-requeue\n",
        "\nexport FOURFOLD_MOST_STARTS='5'\n", "\nexport FOURFOLD_SCRIPT='self'\n",
        "/chain.sbatch\" '/home/run.toml'\n"}) {
    CHECK_THAT(chain, ContainsSubstring(line));
  }
  job.chain = 0;
  job.requeue = true;
  CHECK_THAT(script_of(job), ContainsSubstring("\nexport FOURFOLD_REQUEUE='1'\n"));
  CHECK_THAT(script_of(job), ContainsSubstring("/train.sbatch\""));
}

TEST_CASE("a job that restarts inside is not ended with its first node", "[submission]") {
  Submission job = plain();
  CHECK(script_of(job).find("no-kill") == std::string::npos);
  job.restarts_inside = 2;
  CHECK_THAT(script_of(job), ContainsSubstring("\n#SBATCH --no-kill\n"));
  CHECK_THAT(script_of(job), ContainsSubstring("\nexport FOURFOLD_RESTARTS_INSIDE='2'\n"));
}

TEST_CASE("a shell hands over the words as they were", "[submission]") {
  Submission job = plain();
  job.run_file = "/a b/it's $HOME.toml";
  job.arguments = {"--set", "log.dir=\"x y\"", "--set", "data.train=[\"`id`;\", '$(id)', \"*\"]",
                   ""};
  job.site = "x'; touch /tmp/never; '";
  CHECK(words_of(job) ==
        "</opt/share/slurm/train.sbatch>\n</a b/it's $HOME.toml>\n<--set>\n<log.dir=\"x y\">\n"
        "<--set>\n<data.train=[\"`id`;\", '$(id)', \"*\"]>\n<>\n");
}

TEST_CASE("what is added counts, unless the job could not do without", "[submission]") {
  Submission job = plain();
  job.more = {"--signal=USR2@600", "--dependency=afterok:7"};
  const std::string script = script_of(job);
  CHECK(script.find("--signal=USR2@600") > script.find("--signal=B:USR2@120"));
  CHECK_THAT(script, ContainsSubstring("\n#SBATCH --dependency=afterok:7\n"));
  job.chain = 3;
  CHECK_THROWS_AS(script_of(job), UserError);
  for (const char* option : {"--requeue", "--wait"}) {
    job.more = {option};
    CHECK_THROWS_AS(script_of(job), UserError);
  }
  for (const char* option : {"--output=x",
                             "-ox",
                             "--output",
                             "--out=x",
                             "--job-name=x",
                             "--job-n=x",
                             "-Jx",
                             "--nodes=4",
                             "-N4",
                             "--ntasks=4",
                             "--ntasks-per-node=4",
                             "--ntasks-per-n=4",
                             "-n4",
                             "--time=5",
                             "-t5",
                             "--cpus-per-task=2",
                             "-c2",
                             "--partition=p",
                             "--part=p",
                             "--account=a",
                             "--array=1-2",
                             "--tasks-per-node=3",
                             "--chdir=/",
                             "--workdir=/",
                             "-sN3",
                             "-qhigh",
                             "nodes=3",
                             "--comment=mine,fourfold-run-file=/x",
                             "--comment=fourfold-not-run=2",
                             "fast",
                             "--",
                             ":",
                             ""}) {
    CAPTURE(option);
    job = plain();
    job.more = {option};
    CHECK_THROWS_AS(script_of(job), UserError);
  }
  for (const char* option :
       {"--nodelist=n1", "--time-min=5", "--ntasks-per-core=1", "--cpus-per-gpu=2", "--nice=5",
        "--requeue", "--no-requeue", "--wait-all-nodes=1", "--wait", "--hold", "--exclusive",
        "--reservation=r", "--parsable", "--comment=fourfold"}) {
    CAPTURE(option);
    job = plain();
    job.more = {option};
    CHECK_THAT(script_of(job), ContainsSubstring(std::string("\n#SBATCH ") + option + "\n"));
  }
}

TEST_CASE("a name is one name to squeue, too", "[submission]") {
  Submission job = plain();
  job.name = "a,b";
  CHECK_THROWS_AS(script_of(job), UserError);
}

TEST_CASE("what sbatch would take for something else is refused", "[submission]") {
  for (const char* wrong :
       {"a b", "a\n#SBATCH --uid=0", "a'b", "a\"b", "caf\xc3\xa9", "--comment=a#b"}) {
    CAPTURE(wrong);
    Submission job = plain();
    job.name = wrong;
    CHECK_THROWS_AS(script_of(job), UserError);
    job = plain();
    job.more = {wrong};
    CHECK_THROWS_AS(script_of(job), UserError);
    job = plain();  // the log can go where the job was submitted
    job.log_dir = std::string("/runs/") + wrong;
    CHECK_THAT(script_of(job), ContainsSubstring("\n#SBATCH --output=%x-%j.log\n"));
  }
}

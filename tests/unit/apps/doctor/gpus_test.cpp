// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "healthy_ranks.hpp"
#include "node_facts.hpp"
#include "records.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <map>
#include <optional>

namespace fourfold::doctor {
namespace {

using program::CommandOutput;

/// A node's nvidia-smi, by the word that tells its tables apart.
using Answers = std::map<std::string, CommandOutput>;

NodeFacts look(const Answers& answers) {
  NodeFacts node;
  const auto answer_to = [&](const std::vector<std::string>& command) {
    for (const auto& [word, answer] : answers) {
      if (std::ranges::any_of(command, [&](const std::string& argument) {
            return argument.find(word) != std::string::npos;
          })) {
        return std::optional(answer);
      }
    }
    return std::optional(
        CommandOutput{2, "Field \"" + command[1] + "\" is not a valid field to query.\n"});
  };
  query_gpus(answer_to, node);
  return node;
}

const Answers two_gpus{
    {"temperature.gpu",
     {0,
      "GPU-aa, 0, NVIDIA H100 80GB HBM3, 535.104.05, 31, 4, 81559\n"
      "GPU-bb, 1, NVIDIA H100 80GB HBM3, 535.104.05, 44, 4, 81559\n"}},
    {"ecc.errors", {0, "GPU-bb, 0\nGPU-aa, 0\n"}},
    {"retired_pages", {0, "GPU-aa, [N/A]\nGPU-bb, [N/A]\n"}},
    {"remapped_rows", {0, "GPU-aa, 0, 0\nGPU-bb, 0, 0\n"}},
    {"throttle",
     {0,
      "GPU-aa, Not Active, Not Active, Not Active, Not Active\n"
      "GPU-bb, Not Active, Not Active, Not Active, Not Active\n"}},
    {"topo", {0, " \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n\nLegend:\n\n  X    = Self\n"}}};

/// The same, with one table changed.
NodeFacts but(const std::string& word, const std::string& text, int code = 0) {
  Answers answers = two_gpus;
  answers[word] = {code, text};
  return look(answers);
}

std::vector<NodeFacts> named(std::vector<NodeFacts> nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].node = fmt::format("node{}", i);
  }
  return nodes;
}

Check check_of(const std::vector<NodeFacts>& nodes, bool on_gpus = false) {
  Ranks ranks = healthy_ranks(static_cast<int>(nodes.size()), 2);
  for (RankFacts& facts : ranks) {
    facts.gpu = std::to_string(facts.rank);
  }
  return devices_check(ranks, named(nodes), on_gpus);
}

const NodeFacts sound = look(two_gpus);
const NodeFacts none = {};  // nvidia-smi is not there

}  // namespace

TEST_CASE("GPUs are read from what nvidia-smi prints", "[gpus]") {
  REQUIRE(sound.gpus.size() == 2);
  CHECK(sound.gpu_problem.empty());
  const GpuFacts& gpu = sound.gpus[1];
  CHECK((gpu.index == 1 && gpu.uuid == "GPU-bb" && gpu.name == "NVIDIA H100 80GB HBM3"));
  CHECK((gpu.driver == "535.104.05" && gpu.temperature_c == 44));
  CHECK((gpu.used_mib == 4 && gpu.total_mib == 81559 && gpu.uncorrected_errors == 0));
  CHECK(sound.apart.empty());
  CHECK(to_text(from_text<NodeFacts>(to_text(sound))) == to_text(sound));
  NodeFacts without;
  query_gpus([](const auto&) { return std::nullopt; }, without);
  CHECK(to_text(without) == to_text(none));
}

TEST_CASE("what a driver does not know is not known", "[gpus]") {
  const NodeFacts old = look({{"temperature.gpu", two_gpus.at("temperature.gpu")}});
  REQUIRE(old.gpus.size() == 2);
  CHECK(old.gpus[0].uncorrected_errors == -1);
  CHECK(check_of({old, old}).status() == Status::ok);
  const NodeFacts desktop = but("ecc.errors", "GPU-aa, [N/A]\nGPU-bb, [Not Supported]\n");
  CHECK(desktop.gpus[1].uncorrected_errors == -1);
  // Newer drivers call throttling events.
  Answers renamed = two_gpus;
  renamed.erase("throttle");
  renamed["clocks_event"] = {0, "GPU-aa, Active, Not Active, Active, Not Active\n"};
  CHECK(look(renamed).gpus[0].slowed_by ==
        std::vector<std::string>{"hw_slowdown", "hw_power_brake_slowdown"});
  for (const char* rubbish : {"", "\n\n", "a,b", "GPU-aa, x, , , , , \n", ",,,,,,\n"}) {
    CHECK(check_of({but("temperature.gpu", rubbish)}).status() == Status::ok);
    CHECK(check_of({but("topo", rubbish)}).status() == Status::ok);
    CHECK(check_of({but("remapped_rows", rubbish)}).status() == Status::ok);
  }
}

TEST_CASE("sound GPUs are fine, and so are nodes without any", "[gpus]") {
  CHECK(check_of({sound, sound}).status() == Status::ok);
  CHECK(check_of({sound, sound}).summary() ==
        "2 GPUs on a node (NVIDIA H100 80GB HBM3), at most 44 C, all reach each other; this build "
        "computes on the cores");
  CHECK(check_of({none, none}).summary() == "no GPUs here: ranks compute on their cores");
  CHECK(check_of({sound, sound}, true).status() == Status::ok);
  CHECK(check_of({sound, sound}, true).summary().ends_with("; ranks compute on them"));
  CHECK(check_of({none, none}, true).summary().starts_with("nvidia-smi lists none"));
  // A node of a cluster whose image has the driver's tools, and no GPU.
  const NodeFacts tools = but("temperature.gpu", "No devices were found\n", 6);
  CHECK(check_of({tools, tools}).status() == Status::ok);
  CHECK(check_of({none, tools, sound}).status() == Status::ok);  // a job of two kinds of nodes
}

TEST_CASE("ranks with one GPU are a finding where ranks compute on GPUs", "[gpus]") {
  Ranks ranks = healthy_ranks(2, 2);
  const std::vector<NodeFacts> unlisted =
      named({none, none});  // in containers there is no nvidia-smi
  for (std::size_t rank = 0; rank < 4; ++rank) {
    ranks[rank].gpu = rank % 2 == 0 ? "0000:17:00.0" : "0000:65:00.0";
  }
  CHECK(devices_check(ranks, unlisted, true).status() == Status::ok);
  ranks[3].gpu = ranks[2].gpu;
  CHECK(devices_check(ranks, unlisted, false).status() == Status::ok);
  const Check check = devices_check(ranks, unlisted, true);
  CHECK(check.status() == Status::fail);
  CHECK(check.fails_anyway());
  CHECK(check.findings().size() == 1);
  CHECK(
      finds(check, "ranks 2, 3 have the same GPU (PCI 0000:17:00.0 of node1); start one rank per"));
}

TEST_CASE("a node with bad GPUs is named", "[gpus]") {
  const auto blames_second = [](const NodeFacts& node, const std::string& text) {
    const Check check = check_of({sound, node, sound});
    CHECK(finds(check, text));
    return check.bad_nodes() == Names{"node1"};
  };
  CHECK(blames_second(but("ecc.errors", "GPU-aa, 0\nGPU-bb, 5\n"),
                      "GPU 1 of node1 has had 5 memory errors"));
  CHECK(blames_second(but("remapped_rows", "GPU-aa, 0, 1\nGPU-bb, 0, 0\n"), "GPU 0 of node1"));
  CHECK(blames_second(but("throttle",
                          "GPU-aa, Active, Active, Not Active, Not Active\n"
                          "GPU-bb, Not Active, Not Active, Not Active, Not Active\n"),
                      "hw_slowdown, hw_thermal_slowdown"));
  CHECK(blames_second(but("topo", "\tGPU0\tGPU1\n GPU0\tX\tTNS\n GPU1\tTNS\tX\n"), "0-1 TNS"));
  const std::string lost =
      "GPU-aa, 0, NVIDIA H100 80GB HBM3, 535.104.05, 31, 4, 81559\n"
      "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n";
  CHECK(blames_second(but("temperature.gpu", lost, 255), "node1 has 1 GPUs, others have 2"));
  CHECK(
      blames_second(but("temperature.gpu", "NVIDIA-SMI has failed\n", 9), "NVIDIA-SMI has failed"));
  CHECK(blames_second(none, "may have fallen off its bus"));
}

TEST_CASE("what a run would survive is warned of", "[gpus]") {
  const auto warns = [](const std::vector<NodeFacts>& nodes, const std::string& text) {
    const Check check = check_of(nodes);
    return check.status() == Status::warning && finds(check, text);
  };
  CHECK(warns({sound, but("remapped_rows", "GPU-aa, 1, 0\nGPU-bb, 0, 0\n")}, "at its next reset"));
  CHECK(warns({sound, but("retired_pages", "GPU-aa, No\nGPU-bb, Yes\n")}, "GPU 1 of node1"));
  const std::string other =
      "GPU-aa, 0, NVIDIA H100 80GB HBM3, 550.54, 31, 40000, 81559\n"
      "GPU-bb, 1, NVIDIA H100 80GB HBM3, 550.54, 44, 4, 81559\n";
  CHECK(warns({sound, sound, but("temperature.gpu", other)}, "on node2 is 550.54"));
  CHECK(warns({sound, sound, but("temperature.gpu", other)}, "40000 of 81559 MiB of GPU 0"));
  // Where none reach each other they are of a kind that does not.
  const NodeFacts apart = but("topo", "\tGPU0\tGPU1\n GPU0\tX\tGNS\n GPU1\tGNS\tX\n");
  CHECK(check_of({apart, apart}).status() == Status::ok);
  CHECK(check_of({apart, apart}).summary().find("not all reach each other") != std::string::npos);
}

}  // namespace fourfold::doctor

// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule_shapes.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

namespace fourfold::schedule {
namespace {

struct Generator {
  std::string_view name;
  int least_chunks;
  int most_chunks;
  Placement placement;
  std::vector<Action> (*actions)(const Schedule& schedule, int rank);
  bool needs_whole_group;  ///< at least one micro-batch per stage
};

constexpr int most_chunks = 1024;
/// Micro-batches times virtual stages of a step: up to seven actions each, on every rank in memory.
constexpr std::int64_t most_cells = 1 << 21;

constexpr std::array generators{
    Generator{"naive", 1, 1, Placement::loop, naive_actions, false},
    Generator{"gpipe", 1, 1, Placement::loop, gpipe_actions, false},
    Generator{"1f1b", 1, 1, Placement::loop, one_forward_one_backward_actions, false},
    Generator{"interleaved", 2, most_chunks, Placement::loop, interleaved_actions, true},
    Generator{"zb-h1", 1, 1, Placement::loop, zero_bubble_h1_actions, false},
    Generator{"zb-v", 2, 2, Placement::vee, zero_bubble_v_actions, false},
};

const Generator* find(std::string_view name) {
  const auto found = std::ranges::find(generators, name, &Generator::name);
  return found == generators.end() ? nullptr : &*found;
}

[[noreturn]] void refuse(const std::string& message) {
  throw UserError(ExitCode::config, message);
}

const Generator& known_generator(const std::string& name) {
  const Generator* generator = find(name);
  if (generator == nullptr) {
    const auto near = nearest(name, schedule_names());
    refuse(format_message(
        "mesh.schedule = \"{}\" is no schedule (known are {}, and files that end in .csv); {}",
        name, fmt::join(schedule_names(), ", "),
        near ? format_message("did you mean \"{}\"?", *near) : "choose one of them"));
  }
  return *generator;
}

void validate_chunks(const Generator& generator, const ScheduleRequest& request) {
  const int chunks = request.chunks == 0 ? usual_chunks(request.name) : request.chunks;
  if (generator.least_chunks <= chunks && chunks <= generator.most_chunks) {
    return;
  }
  const int nearest = std::clamp(chunks, generator.least_chunks, generator.most_chunks);
  const std::string has = generator.least_chunks == generator.most_chunks
                              ? fmt::format("has {}", generator.least_chunks)
                              : fmt::format("has {} or more", generator.least_chunks);
  refuse(
      format_message("mesh.chunks = {} does not fit mesh.schedule = \"{}\" (every stage {} chunk{} "
                     "there); set it to {}{}",
                     chunks, request.name, has, generator.most_chunks == 1 ? "" : "s", nearest,
                     generator.most_chunks == 1 ? ", or the schedule to \"interleaved\"" : ""));
}

/// How to get `wanted` micro-batches.
std::string global_batch_for(const ScheduleRequest& request, int wanted) {
  return request.sequences == 0
             ? fmt::format("raise train.global_batch until each rank has {}", wanted)
             : fmt::format("set train.global_batch to {} or more", wanted * request.sequences);
}

}  // namespace

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Generator& generator : generators) {
      list.emplace_back(generator.name);
    }
    return list;
  }();
  return names;
}

int usual_chunks(std::string_view name) {
  const Generator* generator = find(name);
  FOURFOLD_EXPECT(generator != nullptr);
  return generator->least_chunks;
}

int chunks_of(const ScheduleRequest& request) {
  validate_chunks(known_generator(request.name), request);
  return request.chunks == 0 ? usual_chunks(request.name) : request.chunks;
}

void validate(const ScheduleRequest& request) {
  const std::int64_t chunks = chunks_of(request);
  const Generator& generator = known_generator(request.name);
  if (request.stages < 1) {
    refuse(
        format_message("mesh.pp = {} is not positive (a pipeline has stages); set it to 1 or more",
                       request.stages));
  }
  const int least = generator.needs_whole_group ? request.stages : 1;
  if (request.micro_batches < least) {
    refuse(format_message(
        "mesh.schedule = \"{}\" needs at least {} micro-batches per step with mesh.pp = {}, and "
        "there are {} (every stage must get one); {}, or set mesh.schedule to \"1f1b\"",
        request.name, least, request.stages, request.micro_batches,
        global_batch_for(request, least)));
  }
  const std::int64_t most_stages = most_cells / chunks;
  if (request.stages > most_stages) {
    refuse(
        format_message("mesh.pp = {} with mesh.chunks = {} are too many stages (every rank holds "
                       "the lists of all); set mesh.pp to {} or less",
                       request.stages, chunks, most_stages));
  }
  const std::int64_t most_micro_batches = most_stages / request.stages;
  if (request.micro_batches > most_micro_batches) {
    refuse(format_message(
        "a step of {} micro-batches through mesh.pp = {} stages is too long (every rank holds the "
        "lists of all); lower train.global_batch, so that there are at most {}, or mesh.pp",
        request.micro_batches, request.stages, most_micro_batches));
  }
}

Schedule make_schedule(const ScheduleRequest& request) {
  validate(request);
  const Generator& generator = known_generator(request.name);
  Schedule schedule{.name = request.name,
                    .stages = request.stages,
                    .micro_batches = request.micro_batches,
                    .chunks = chunks_of(request),
                    .placement = generator.placement,
                    .ranks = {}};
  for (int rank = 0; rank < schedule.stages; ++rank) {
    schedule.ranks.push_back(generator.actions(schedule, rank));
  }
  return lowered(std::move(schedule));
}

}  // namespace fourfold::schedule

// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "captured_log.hpp"
#include "save/position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/checkpoint_load.hpp>
#include <fourfold/io/digest.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>

#include <atomic>
#include <fstream>
#include <span>

using namespace fourfold;
using namespace fourfold::io_test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using harness::read_bytes;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

/// Two steps, 10 and 20, saved by two ranks; each test damages its own copy of them.
class TwoSteps {
 public:
  TwoSteps() {
    static const ScratchFolder original;
    static const bool is_saved = [] {
      for (const std::int64_t step : {10, 20}) {
        comm::run_ranks(2, [&](comm::Communicator& world) {
          save_as(original.path(), all_cuts()[0], 2, step, world);
        });
      }
      return true;
    }();
    static_cast<void>(is_saved);
    fs::copy(original.path(), directory(), fs::copy_options::recursive);
  }
  fs::path directory() const { return scratch_ / "checkpoints"; }
  fs::path newest(std::string_view file) const { return directory() / "step-000000020" / file; }

 private:
  ScratchFolder scratch_;
};

void flip(const fs::path& file, std::uint64_t offset, unsigned char mask = 0x10) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  const int byte = stream.get();
  stream.seekp(static_cast<std::streamoff>(offset));
  stream.put(static_cast<char>(byte ^ mask));
  REQUIRE(stream.good());
}

struct Restored {
  std::int64_t step = -1;
  std::int64_t wrong = 0;
  std::string log;
};

/// Restores on three ranks and checks every element.
Restored restore(const fs::path& directory) {
  Restored result;
  const harness::CapturedLog log;
  std::atomic<std::int64_t> wrong{0};
  std::atomic<std::int64_t> step{-1};
  comm::run_ranks(3, [&](comm::Communicator& world) {
    RankState state(small_model(), all_cuts()[2].cut, world.rank(), 3, false);
    const auto checkpoint = io::CheckpointStore(directory).restore(state.wanted, world);
    wrong += state.wrong_elements();
    step = checkpoint ? checkpoint->step() : -1;
  });
  return {step, wrong, log.text()};
}

std::vector<std::string> verify_newest(const fs::path& directory) {
  std::vector<std::string> damage;
  comm::run_ranks(2, [&](comm::Communicator& world) {
    const auto mine = io::verify(io::open_checkpoint(directory / "step-000000020", world), world);
    if (world.rank() == 1) {
      damage = mine;
    }
  });
  return damage;
}

}  // namespace

TEST_CASE("an undamaged directory gives its newest step without a word") {
  const TwoSteps steps;
  const Restored restored = restore(steps.directory());
  CHECK(restored.step == 20);
  CHECK(restored.wrong == 0);
  CHECK(restored.log.empty());
  CHECK(verify_newest(steps.directory()).empty());
}

TEST_CASE("a damaged newest step is passed over for the older one, and the log says why") {
  const TwoSteps steps;
  struct Case {
    const char* name;
    std::function<void()> damage;
    const char* said;
  };
  const std::string payload = "shard-00000-of-00002.h5";
  const std::string other = "shard-00001-of-00002.h5";
  const std::vector<Case> cases = {
      {"manifest bit", [&] { flip(steps.newest("MANIFEST.json"), 60); }, "fails its own CRC-32C"},
      {"manifest cut", [&] { fs::resize_file(steps.newest("MANIFEST.json"), 100); }, "cut off"},
      {"manifest empty", [&] { fs::resize_file(steps.newest("MANIFEST.json"), 0); }, "cut off"},
      {"manifest gone", [&] { fs::remove(steps.newest("MANIFEST.json")); }, "No such file"},
      {"manifest of the other step",
       [&] {
         fs::copy_file(steps.directory() / "step-000000010/MANIFEST.json",
                       steps.newest("MANIFEST.json"), fs::copy_options::overwrite_existing);
       },
       "index.h5"},
      {"index bit", [&] { flip(steps.newest("index.h5"), 3000); }, "CRC-32C differs"},
      {"index cut", [&] { fs::resize_file(steps.newest("index.h5"), 3000); }, "index.h5"},
      {"index gone", [&] { fs::remove(steps.newest("index.h5")); }, "No such file"},
      {"payload gone", [&] { fs::remove(steps.newest(payload)); }, "No such file"},
      {"payload cut",
       [&] { fs::resize_file(steps.newest(payload), fs::file_size(steps.newest(payload)) - 1); },
       "instead of"},
      {"payload longer",
       [&] { fs::resize_file(steps.newest(payload), fs::file_size(steps.newest(payload)) + 1); },
       "instead of"},
      {"unknown file", [&] { std::ofstream(steps.newest("shard-00002-of-00003.h5")) << "x"; },
       "does not belong"},
      {"symbolic link",
       [&] {
         fs::rename(steps.newest(payload), steps.directory() / "elsewhere.h5");
         fs::create_symlink(steps.directory() / "elsewhere.h5", steps.newest(payload));
       },
       "it is a symbolic link, which is not followed here"},
      {"payload with a hole",
       [&] {
         std::fstream stream(steps.newest(payload),
                             std::ios::in | std::ios::out | std::ios::binary);
         stream.seekp(4096);
         stream << std::string(4096, '\0');
       },
       "shard-00000"},
      {"payload emptied",
       [&] {
         const auto size = fs::file_size(steps.newest(other));
         fs::resize_file(steps.newest(other), 0);
         fs::resize_file(steps.newest(other), size);
       },
       "shard-00001"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    const TwoSteps fresh;
    fs::remove_all(steps.directory());
    fs::copy(fresh.directory(), steps.directory(), fs::copy_options::recursive);
    one.damage();
    const Restored restored = restore(steps.directory());
    CHECK(restored.step == 10);
    CHECK(restored.wrong == 0);
    CHECK_THAT(restored.log, ContainsSubstring("step-000000020"));
    CHECK_THAT(restored.log, ContainsSubstring(one.said));
  }
}

TEST_CASE("every flipped byte of every payload is found by verify, and none is loaded") {
  const TwoSteps steps;
  for (const char* name : {"shard-00000-of-00002.h5", "shard-00001-of-00002.h5"}) {
    const fs::path file = steps.newest(name);
    const std::uint64_t bytes = fs::file_size(file);
    for (std::uint64_t offset = 0; offset < bytes; offset += 61) {
      CAPTURE(name, offset);
      flip(file, offset);
      const std::vector<std::string> damage = verify_newest(steps.directory());
      REQUIRE_FALSE(damage.empty());
      REQUIRE_THAT(damage.front(), ContainsSubstring(name));
      if (offset % (61 * 16) == 0) {
        REQUIRE(restore(steps.directory()).wrong == 0);
      }
      flip(file, offset);
    }
  }
  CHECK(verify_newest(steps.directory()).empty());
}

TEST_CASE("a payload in the place of another is refused") {
  const TwoSteps steps;
  fs::rename(steps.newest("shard-00000-of-00002.h5"), steps.newest("x"));
  fs::rename(steps.newest("shard-00001-of-00002.h5"), steps.newest("shard-00000-of-00002.h5"));
  fs::rename(steps.newest("x"), steps.newest("shard-00001-of-00002.h5"));
  CHECK(restore(steps.directory()).step == 10);
}

TEST_CASE("with every step damaged the restart ends with an error, after naming each") {
  const TwoSteps steps;
  flip(steps.newest("index.h5"), 500);
  fs::remove(steps.directory() / "step-000000010/MANIFEST.json");
  CHECK_THROWS_MATCHES(restore(steps.directory()), UserError,
                       MessageMatches(ContainsSubstring("no checkpoint there is intact")));
}

TEST_CASE("LATEST is a hint, and what is no step is not looked at") {
  const TwoSteps steps;
  std::ofstream(steps.directory() / "LATEST") << "99 nonsense\n";
  fs::create_directory(steps.directory() / ".tmp-step-000000030-0123456789abcdef");
  fs::create_directory(steps.directory() / "step-30");
  std::ofstream(steps.directory() / "step-000000040") << "a file";
  CHECK(io::list_steps(steps.directory()) == std::vector<std::int64_t>{10, 20});
  CHECK(restore(steps.directory()).step == 20);
  CHECK(io::list_steps(steps.directory() / "nowhere").empty());
  CHECK(restore(steps.directory() / "nowhere").step == -1);
}

TEST_CASE("another model is refused with its differences by tensor") {
  const TwoSteps steps;
  float wrong_shape[4] = {};
  BFloat16 wrong_dtype[17];
  const std::vector<io::WantedBox> wanted = {
      {{"embed.weight", io::TensorState::master},
       {2, 2},
       Box::whole({2, 2}),
       TensorView(wrong_shape, {2, 2})},
      {{"layers.0.norm.weight", io::TensorState::master},
       {17},
       Box::whole({17}),
       TensorView(wrong_dtype, {17})},
      {{"layers.7.new", io::TensorState::master},
       {2, 2},
       Box::whole({2, 2}),
       TensorView(wrong_shape, {2, 2})},
  };
  comm::run_ranks(2, [&](comm::Communicator& world) {
    std::string message;
    try {
      (void)io::CheckpointStore(steps.directory()).restore(wanted, world);
    } catch (const UserError& error) {
      message = error.what();
      if (error.code() != ExitCode::config) {
        message.clear();
      }
    }
    for (const char* said : {"embed.weight/master has shape [31, 13] in the checkpoint and [2, 2]",
                             "layers.0.norm.weight/master is f32 in the checkpoint and bf16",
                             "layers.7.new/master is not in the checkpoint"}) {
      if (message.find(said) == std::string::npos) {
        throw std::runtime_error("not said: " + std::string(said) + " in: " + message);
      }
    }
  });
}

TEST_CASE("a folder that is no checkpoint, and one that is damaged, are told apart") {
  const TwoSteps steps;
  const auto open = [&](const fs::path& path) {
    return [path] {
      comm::run_ranks(1,
                      [&](comm::Communicator& world) { (void)io::open_checkpoint(path, world); });
    };
  };
  CHECK_NOTHROW(open(steps.directory() / "step-000000010")());
  CHECK_THROWS_MATCHES(open(steps.directory())(), UserError,
                       MessageMatches(ContainsSubstring("is no checkpoint")));
  flip(steps.newest("index.h5"), 500);
  CHECK_THROWS_MATCHES(open(steps.directory() / "step-000000020")(), UserError,
                       MessageMatches(ContainsSubstring("the checkpoint is damaged: index.h5")));
}

namespace {

/// Puts something else into a manifest, and seals it like one.
void forge(const fs::path& manifest, const std::string& from, const std::string& to) {
  constexpr std::string_view member = ",\n  \"crc32c\": \"";
  std::string text = read_bytes(manifest);
  text.resize(text.rfind(member));
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  const std::uint32_t crc = io::crc32c(std::as_bytes(std::span(text)));
  std::ofstream(manifest) << text << member << fmt::format("{:08x}", crc) << "\"\n}\n";
}

}  // namespace

TEST_CASE("a manifest that was made up is refused, whatever its checksum says",
          "[checkpoint_damage]") {
  const TwoSteps steps;
  const fs::path manifest = steps.newest("MANIFEST.json");
  std::string expected;
  SECTION("nested without end") {
    const std::string brackets(100'000, '[');
    forge(manifest, "\"step\"",
          "\"x\": " + brackets + std::string(brackets.size(), ']') + ",\n  \"step\"");
    expected = "is nested too deep";
  }
  SECTION("a mesh that nobody has") {
    forge(manifest, "\"dp\": 2", "\"dp\": 2000000000");
    expected = "has a \"mesh\" of more than";
  }
  SECTION("axes whose product no number holds") {
    forge(manifest, "\"cp\": 1,\n    \"tp\": 1", "\"cp\": 2000000000,\n    \"tp\": 9000000000000");
    expected = "has a \"mesh\" of more than";
  }
  const Restored result = restore(steps.directory());
  CHECK(result.step == 10);
  CHECK_THAT(result.log, ContainsSubstring(expected));
}

TEST_CASE("verify works out identity and model anew", "[checkpoint_damage]") {
  const TwoSteps steps;
  const std::string key = GENERATE(std::string("identity"), "model");
  const fs::path manifest = steps.newest("MANIFEST.json");
  const std::string member = "\"" + key + "\": \"";
  const std::string text = read_bytes(manifest);
  const char first = text[text.find(member) + member.size()];
  const auto damage = [&] {
    std::vector<std::string> lines;
    comm::run_ranks(2, [&](comm::Communicator& world) {
      const auto checkpoint = io::open_checkpoint(steps.directory() / "step-000000020", world);
      const auto found = io::verify(checkpoint, world);
      if (world.rank() == 0) {
        lines = found;
      }
    });
    return lines;
  };
  CHECK(damage().empty());
  forge(manifest, member + first, member + (first == '0' ? '1' : '0'));
  REQUIRE(damage().size() == 1);
  CHECK_THAT(damage().front(), ContainsSubstring("names the " + key));
}

TEST_CASE("a folder that is named like another step is passed over", "[checkpoint_damage]") {
  const TwoSteps steps;
  fs::rename(steps.directory() / "step-000000010", steps.directory() / "step-000000030");
  const Restored result = restore(steps.directory());
  CHECK(result.step == 20);
  CHECK(result.wrong == 0);
  CHECK_THAT(result.log, ContainsSubstring("is of step 10; rename the folder to step-000000010"));
}

TEST_CASE("a copy of a step may have any other name", "[checkpoint_damage]") {
  const TwoSteps steps;
  fs::rename(steps.directory() / "step-000000010", steps.directory() / "before-the-change");
  comm::run_ranks(1, [&](comm::Communicator& world) {
    CHECK(io::open_checkpoint(steps.directory() / "before-the-change", world).step() == 10);
  });
}

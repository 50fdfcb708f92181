// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Index and manifest made again from the payloads: byte for byte what was saved, or nothing.
#include "repaired_step.hpp"
#include "sweep.hpp"

#include <fourfold/io/digest.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>

#include <functional>

using namespace fourfold;
using namespace fourfold::io_test;
using Catch::Matchers::ContainsSubstring;
using harness::files_below;
using harness::read_bytes;
using harness::ScratchFolder;
using harness::write_bytes;
namespace fs = std::filesystem;

namespace {

/// A save; `fresh` copies it anew.
class Saved {
 public:
  explicit Saved(const RepairCase& saved = {}) {
    save_case(scratch_ / "original", saved);
    step_name_ = fmt::format("step-{:09}", saved.step);
    files_ = files_below(scratch_ / "original");
  }
  fs::path fresh() const {
    fs::remove_all(scratch_ / "work");
    fs::copy(scratch_ / "original", scratch_ / "work", fs::copy_options::recursive);
    return scratch_ / "work" / step_name_;
  }
  fs::path original() const { return scratch_ / "original" / step_name_; }
  /// Nothing else is there, in the step or beside it.
  bool is_whole() const { return files_below(scratch_ / "work") == files_; }
  std::vector<std::string> payloads() const {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : files_below(original())) {
      if (name.starts_with("shard-")) {
        names.push_back(name);
      }
    }
    return names;
  }
  const ScratchFolder& scratch() const { return scratch_; }

 private:
  ScratchFolder scratch_;
  std::string step_name_;
  std::map<std::string, std::string> files_;
};

void flip(const fs::path& file, std::size_t byte, unsigned char mask = 0x10) {
  std::string bytes = read_bytes(file);
  bytes.at(byte) = static_cast<char>(static_cast<unsigned char>(bytes.at(byte)) ^ mask);
  write_bytes(file, bytes);
}

using Damage = std::function<void(const fs::path& file)>;
std::vector<std::pair<std::string, Damage>> damages() {
  return {{"missing", [](const fs::path& file) { fs::remove(file); }},
          {"empty", [](const fs::path& file) { write_bytes(file, ""); }},
          {"cut", [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }},
          {"longer", [](const fs::path& file) { write_bytes(file, read_bytes(file) + "x"); }},
          {"first bit", [](const fs::path& file) { flip(file, 0, 1); }},
          {"a bit", [](const fs::path& file) { flip(file, fs::file_size(file) / 3); }},
          {"last bit", [](const fs::path& file) { flip(file, fs::file_size(file) - 1, 0x80); }},
          {"something else", [](const fs::path& file) { write_bytes(file, "not of ours"); }}};
}

const io::RepairOptions trusting{.trust_payloads = true};

}  // namespace

TEST_CASE("whatever becomes of index, manifest or both, the repaired folder is as it was saved") {
  const auto saved_as = GENERATE(
      RepairCase{0, 3}, RepairCase{1, 1}, RepairCase{2, 4}, RepairCase{3, 5, {0, 0, 1, 1, 2}},
      RepairCase{4, 3, {0, 0, 0}}, RepairCase{5, 5, {0, 1, 0, 2, 1}, 2147483648},
      RepairCase{.cut = 2, .ranks = 2, .values = {.model = tiny_model()}});
  CAPTURE(saved_as.cut, saved_as.ranks);
  const Saved saved(saved_as);
  for (const auto& [how, damage] : damages()) {
    CAPTURE(how);
    fs::path step = saved.fresh();
    damage(step / "index.h5");
    io::RepairReport report = io::repair_index(step);
    CHECK(report.rebuilt == std::vector<std::string>{"index.h5"});
    CHECK(report.proof == io::RepairProof::manifest);
    CHECK(report.step == saved_as.step);
    REQUIRE(saved.is_whole());

    step = saved.fresh();
    damage(step / "MANIFEST.json");
    report = io::repair_index(step);
    CHECK(report.rebuilt == std::vector<std::string>{"MANIFEST.json"});
    CHECK(report.proof == io::RepairProof::index);
    REQUIRE(saved.is_whole());

    step = saved.fresh();
    damage(step / "index.h5");
    damage(step / "MANIFEST.json");
    report = io::repair_index(step);
    CHECK(report.rebuilt == std::vector<std::string>{"index.h5", "MANIFEST.json"});
    CHECK(report.damage.size() == 2);
    CHECK(report.proof == io::RepairProof::latest);
    REQUIRE(saved.is_whole());
  }
}

TEST_CASE("files that are larger than any of their kind are made anew unread") {
  const Saved saved;
  for (const char* const name : {"MANIFEST.json", "index.h5"}) {
    const fs::path step = saved.fresh();
    fs::remove(step / name);
    write_bytes(step / name, "");
    fs::resize_file(step / name, std::uintmax_t{1} << 40);  // of which nothing is on the disk
    const io::RepairReport report = io::repair_index(step);
    CHECK(report.rebuilt == std::vector<std::string>{name});
    REQUIRE(saved.is_whole());
  }
}

TEST_CASE("a rebuilt step is restored from") {
  const Saved saved;
  const fs::path step = saved.fresh();
  fs::remove(step / "index.h5");
  fs::remove(step / "MANIFEST.json");
  io::repair_index(step);
  comm::run_ranks(2, [&](comm::Communicator& world) {
    RankState state(small_model(), all_cuts()[2].cut, world.rank(), 2, false);
    const auto restored = io::CheckpointStore(step.parent_path()).restore(state.wanted, world);
    const auto intact = restored && restored->scalars() == awkward_scalars(10) &&
                        state.wrong_elements() == 0 && io::verify(*restored, world).empty();
    if (!intact) {
      throw std::runtime_error("not restored");
    }
  });
}

TEST_CASE("with both lost and no LATEST payloads are trusted only when that is asked for") {
  const Saved saved;
  const std::vector<std::function<void(const fs::path&)>> latests{
      [](const fs::path& latest) { fs::remove(latest); },
      [](const fs::path& latest) { write_bytes(latest, "9 of another step\n"); },
      [](const fs::path& latest) { flip(latest, fs::file_size(latest) - 2, 1); }};
  for (const auto& spoil : latests) {
    const fs::path step = saved.fresh();
    spoil(step.parent_path() / "LATEST");
    fs::remove(step / "index.h5");
    flip(step / "MANIFEST.json", 50);
    const auto before = files_below(step.parent_path());
    const Refusal refused = try_repair(step);
    CHECK(refused.code == 65);
    CHECK_THAT(refused.message, ContainsSubstring("nothing proves") &&
                                    ContainsSubstring("LATEST names") &&
                                    ContainsSubstring("--trust-payloads") &&
                                    ContainsSubstring("nothing was changed"));
    CHECK(files_below(step.parent_path()) == before);
    CHECK(io::repair_index(step, trusting).proof == io::RepairProof::none);
    CHECK(files_below(step) == files_below(saved.original()));
  }
}

TEST_CASE(
    "a folder in which nothing is damaged is left as it is, and so is every folder in a dry run") {
  const Saved saved;
  fs::path step = saved.fresh();
  CHECK(io::repair_index(step).proof == io::RepairProof::not_needed);
  CHECK(saved.is_whole());
  fs::remove(step / "index.h5");
  fs::resize_file(step / "MANIFEST.json", 9);
  const auto before = files_below(step.parent_path());
  std::int64_t told = 0;
  const io::RepairReport report = io::repair_index(
      step, {.dry_run = true, .progress = [&](std::int64_t done, std::int64_t total) {
               REQUIRE(done > told);
               REQUIRE(done <= total);
               told = done;
             }});
  CHECK(report.rebuilt.size() == 2);
  CHECK(report.bytes_read == told);
  CHECK(told > 0);
  CHECK(files_below(step.parent_path()) == before);
}

TEST_CASE("no damaged byte of a payload is let pass, and its file is named") {
  const Saved saved(RepairCase{.cut = 1, .ranks = 2, .values = {.model = tiny_model()}});
  const std::string state = GENERATE("index", "manifest", "both", "both, trusted");
  const fs::path step = saved.fresh();
  if (state != "manifest") {
    fs::remove(step / "index.h5");
  }
  if (state != "index") {
    fs::remove(step / "MANIFEST.json");
  }
  if (state == "both, trusted") {
    fs::remove(step.parent_path() / "LATEST");
  }
  bool is_tensor_named = false;
  harness::Sweep sweep(3);
  for (const std::string& name : saved.payloads()) {
    const std::string whole = read_bytes(step / name);
    for (std::size_t byte = 0; byte < whole.size(); byte += 43) {
      if (!sweep.takes_next()) {
        continue;
      }
      CAPTURE(state, name, byte);
      flip(step / name, byte, static_cast<unsigned char>(1U << (byte % 8)));
      const Refusal refused = try_repair(step, {.trust_payloads = state == "both, trusted"});
      REQUIRE(refused.code == 65);
      REQUIRE_THAT(refused.message, ContainsSubstring("shard-"));
      is_tensor_named = is_tensor_named || refused.message.find("a/master b") != std::string::npos;
      write_bytes(step / name, whole);
    }
  }
  CHECK(is_tensor_named == (state != "index"));
  CHECK(try_repair(step, {.trust_payloads = state == "both, trusted"}).code == 0);
  CHECK(files_below(step) == files_below(saved.original()));
}

TEST_CASE("missing and cut payloads are refused and named, whatever else is there") {
  const Saved saved(RepairCase{3, 4});  // each tensor whole in one file
  const bool has_manifest = GENERATE(true, false);
  for (const std::string& name : saved.payloads()) {
    for (const char* how : {"missing", "cut", "link", "empty"}) {
      CAPTURE(has_manifest, name, how);
      const fs::path step = saved.fresh();
      fs::remove(step / (has_manifest ? "index.h5" : "MANIFEST.json"));
      if (how == std::string("cut")) {
        fs::resize_file(step / name, fs::file_size(step / name) - 1);
      } else {
        fs::remove(step / name);
      }
      if (how == std::string("link")) {
        fs::create_symlink(saved.original() / name, step / name);
      } else if (how == std::string("empty")) {
        write_bytes(step / name, "");
      }
      const auto before = files_below(step.parent_path());
      const Refusal refused = try_repair(step, trusting);
      CHECK(refused.code == 65);
      CHECK_THAT(refused.message, ContainsSubstring(name));
      CHECK(files_below(step.parent_path()) == before);
    }
  }
}

TEST_CASE("payloads of other saves are refused") {
  const Saved saved;
  const std::string name = "shard-00001-of-00003.h5";
  struct Foreign {
    RepairCase other;
    const char* said;
    bool passes_when_trusted = false;
  };
  const std::vector<Foreign> foreigners{
      {{.step = 20}, "is of step 20, and shard-00000-of-00003.h5 is of step 10"},
      {{.cut = 2}, ""},
      {{.values = {.model = tiny_model()}}, ""},
      {{.cut = 1, .ranks = 4, .file_of_rank = {0, 1, 1, 2}}, "was saved on mesh"},
      // The same step of the same run, trained otherwise: only checksums tell.
      {{.values = {.salt = 7}}, "", true}};
  for (const Foreign& foreign : foreigners) {
    const ScratchFolder other;
    save_case(other.path(), foreign.other);
    const fs::path from = other / fmt::format("step-{:09}", foreign.other.step) / name;
    for (const char* lost : {"index.h5", "MANIFEST.json", "both"}) {
      CAPTURE(foreign.said, lost);
      const fs::path step = saved.fresh();
      for (const char* file : {"index.h5", "MANIFEST.json"}) {
        if (lost == std::string(file) || lost == std::string("both")) {
          fs::remove(step / file);
        }
      }
      fs::copy_file(from, step / name, fs::copy_options::overwrite_existing);
      const Refusal refused = try_repair(step);
      CHECK(refused.code == 65);
      if (lost != std::string("index.h5")) {
        CHECK_THAT(refused.message, ContainsSubstring(foreign.said));
        CHECK(try_repair(step, trusting).code == (foreign.passes_when_trusted ? 0 : 65));
      } else {
        CHECK_THAT(refused.message, ContainsSubstring(name + " "));
        CHECK(try_repair(step, trusting).code == 65);
      }
    }
  }
}

TEST_CASE("scalars that payloads do not agree on are refused") {
  const Saved saved;
  const ScratchFolder other;
  comm::run_ranks(3, [&](comm::Communicator& world) {
    save_as(other.path(), all_cuts()[1], 3, 10, world);  // other texts and numbers
  });
  const fs::path step = saved.fresh();
  fs::remove(step / "MANIFEST.json");
  fs::copy_file(other / "step-000000010/shard-00002-of-00003.h5", step / "shard-00002-of-00003.h5",
                fs::copy_options::overwrite_existing);
  const Refusal refused = try_repair(step, trusting);
  CHECK(refused.code == 65);
  CHECK_THAT(refused.message, ContainsSubstring("shard-00002-of-00003.h5 is of another save"));
}

TEST_CASE("the index of another save does not pass for proof") {
  const Saved saved;
  const ScratchFolder other;
  save_case(other.path(), {.values = {.salt = 3}});
  const fs::path step = saved.fresh();
  fs::copy_file(other / "step-000000010/index.h5", step / "index.h5",
                fs::copy_options::overwrite_existing);
  fs::remove(step / "MANIFEST.json");
  fs::rename(step.parent_path() / "LATEST", step.parent_path() / "kept");
  CHECK_THAT(try_repair(step).message, ContainsSubstring("index.h5 is not what they make"));
  fs::rename(step.parent_path() / "kept", step.parent_path() / "LATEST");
  CHECK(io::repair_index(step).proof == io::RepairProof::latest);
  CHECK(saved.is_whole());
}

TEST_CASE("what is foreign is refused and not followed") {
  const Saved saved;
  const auto refused_after = [&](const std::function<void(const fs::path&)>& change) {
    const fs::path step = saved.fresh();
    fs::remove(step / "index.h5");
    change(step);
    const Refusal refused =
        try_repair(fs::exists(step) ? step : step.parent_path() / "step-000000011");
    CHECK(refused.code == 65);
    CHECK_FALSE(fs::is_regular_file(fs::symlink_status(step / "index.h5")));
    return refused.message;
  };
  CHECK_THAT(refused_after([&](const fs::path& step) {
               fs::create_symlink(saved.original() / "index.h5", step / "index.h5");
             }),
             ContainsSubstring("index.h5 is no regular file"));
  CHECK_THAT(refused_after([](const fs::path& step) { fs::create_directory(step / "index.h5"); }),
             ContainsSubstring("index.h5 is no regular file"));
  CHECK_THAT(refused_after([](const fs::path& step) { write_bytes(step / "notes.txt", "?"); }),
             ContainsSubstring("notes.txt does not belong"));
  CHECK_THAT(refused_after([](const fs::path& step) {
               fs::copy_file(step / "shard-00000-of-00003.h5", step / "shard-00000-of-00007.h5");
             }),
             ContainsSubstring("payloads of different saves"));
  CHECK_THAT(refused_after([](const fs::path& step) {
               fs::rename(step, step.parent_path() / "step-000000011");
             }),
             ContainsSubstring("are of step 10"));
  CHECK_THAT(refused_after([](const fs::path& step) {  // whole, but of a version to come
               std::string text = read_bytes(step / "MANIFEST.json");
               text.replace(text.find("\"version\": 1"), 12, "\"version\": 2");
               const std::size_t body = text.rfind(",\n  \"crc32c\"");
               const auto crc = io::crc32c(std::as_bytes(std::span(text).first(body)));
               text.replace(body + 15, 8, fmt::format("{:08x}", crc));
               write_bytes(step / "MANIFEST.json", text);
             }),
             ContainsSubstring("is not damaged, but has format version 2"));
  CHECK(try_repair(saved.scratch() / "absent").code == 78);
}

TEST_CASE("a step with one payload of several, by a name that is not a step's, is repaired too") {
  const ScratchFolder scratch;
  const NamedCut last_only{
      "last", [](const Shape& shape, std::size_t, int ranks) {
        return std::vector<io::HeldBox>{{Box::whole(shape), io::RankSet::single(ranks - 1)}};
      }};
  comm::run_ranks(
      3, [&](comm::Communicator& world) { save_as(scratch / "c", last_only, 3, 10, world); });
  fs::rename(scratch / "c/step-000000010", scratch / "c/kept");
  const auto whole = files_below(scratch / "c");
  REQUIRE(whole.contains("kept/shard-00002-of-00003.h5"));
  fs::remove(scratch / "c/kept/index.h5");
  fs::remove(scratch / "c/kept/MANIFEST.json");
  CHECK(io::repair_index(scratch / "c/kept/").proof == io::RepairProof::latest);
  CHECK(files_below(scratch / "c") == whole);
}

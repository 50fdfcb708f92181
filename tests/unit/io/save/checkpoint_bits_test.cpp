// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Every bit of every file of a tiny checkpoint, flipped one at a time: verify names the file, and
/// a restart loads the older step or, where the bit is none that it reads, exact values. So too
/// files cut at every 512 bytes, zeroed 4 KiB at a time, exchanged, and taken from another step.
/// Each restart of the sample looks through the whole directory; the others look at what is damaged
/// only. FOURFOLD_CHECKPOINT_BITS=whole restarts at every bit. Under AddressSanitizer every seventh
/// bit is flipped.
#include "captured_log.hpp"
#include "position_coded_state.hpp"
#include "save_attempt.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

using namespace fourfold;
using namespace fourfold::io_test;
using harness::read_bytes;
using harness::ScratchFolder;
using harness::write_bytes;
namespace fs = std::filesystem;

namespace {

constexpr const char* older = "step-000000010";
constexpr const char* newer = "step-000000020";
#ifdef __SANITIZE_ADDRESS__      // seven times slower
constexpr long flip_stride = 7;  // each place in a byte
constexpr long restart_stride = 7 * 141;
#else
constexpr long flip_stride = 1;
constexpr long restart_stride = 97;
#endif

bool is_whole() {
  const char* setting = std::getenv("FOURFOLD_CHECKPOINT_BITS");
  return setting != nullptr && std::string_view(setting) == "whole";
}
long bits_between_flips() {
  return is_whole() ? 1 : flip_stride;
}
long bits_between_restarts() {
  return is_whole() ? 1 : restart_stride;
}

bool contains_text(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Two steps of two ranks, other values in each.
class TwoSteps {
 public:
  TwoSteps() {
    for (const std::uint64_t step : {10, 20}) {
      comm::run_ranks(2, [&](comm::Communicator& world) {
        save_as(directory(), all_cuts()[1], 2, static_cast<std::int64_t>(step), world,
                {.keep_last = 0, .plan = {.smallest_part_bytes = 8}},
                {.model = tiny_model(), .salt = step});
      });
    }
  }
  fs::path directory() const { return scratch_ / "checkpoints"; }
  fs::path newest(std::string_view file) const { return directory() / newer / file; }

 private:
  ScratchFolder scratch_;
};

/// What is said and done about damage, by one rank that looks again and again.
class Checker {
 public:
  Checker(const TwoSteps& steps, comm::Communicator& world)
      : steps_(steps),
        world_(world),
        state_(tiny_model(), all_cuts()[0].cut, 0, 1, false),
        newest_(io::open_checkpoint(steps.directory() / newer, world)) {
    REQUIRE(restore() == 20);
    REQUIRE(lines().empty());
  }

  /// What is wrong with the newest step, as `fourfold ckpt verify` would say.
  std::string said() const {
    try {
      std::string text;
      for (const std::string& line :
           io::verify(io::open_checkpoint(steps_.directory() / newer, world_), world_)) {
        text += line + "\n";
      }
      return text;
    } catch (const UserError& error) {
      REQUIRE(error.code() == ExitCode::data_corrupt);
      return error.what();
    }
  }
  /// The same of its payloads, when manifest and index have been read before.
  std::string lines() const {
    std::string text;
    for (const std::string& line : io::verify(newest_, world_)) {
      text += line + "\n";
    }
    return text;
  }

  /// Loads the newest step, whose manifest and index have been read before, if it is intact.
  /// @return whether it was refused; what is loaded is right
  bool is_refused() {
    if (!io::load(newest_, state_.wanted, world_).intact()) {
      return true;
    }
    REQUIRE(state_.wrong_elements(20) == 0);
    return false;
  }

  /// @return the step that a restart went on from; all its values are right, and a newer one that
  /// it passed over is named
  std::int64_t restore() {
    const harness::CapturedLog log;
    const auto checkpoint = io::CheckpointStore(steps_.directory()).restore(state_.wanted, world_);
    REQUIRE(checkpoint);
    REQUIRE(state_.wrong_elements(static_cast<std::uint64_t>(checkpoint->step())) == 0);
    REQUIRE(contains_text(log.text(), newer) == (checkpoint->step() == 10));
    return checkpoint->step();
  }

 private:
  const TwoSteps& steps_;
  comm::Communicator& world_;
  RankState state_;
  io::Checkpoint newest_;
};

void examine(const TwoSteps& steps, const std::function<void(Checker&)>& work) {
  comm::run_ranks(1, [&](comm::Communicator& world) {
    Checker checker(steps, world);
    work(checker);
  });
}

/// A file whose bits are flipped in place, and back.
class BitFlipper {
 public:
  explicit BitFlipper(const fs::path& file)
      : bytes_(read_bytes(file)), descriptor_(::open(file.c_str(), O_WRONLY)) {
    REQUIRE(descriptor_ >= 0);
  }
  BitFlipper(const BitFlipper&) = delete;
  BitFlipper& operator=(const BitFlipper&) = delete;
  ~BitFlipper() { ::close(descriptor_); }

  long bits() const { return std::ssize(bytes_) * 8; }
  void flip(long bit) const {
    write(bit, bytes_[static_cast<std::size_t>(bit / 8)] ^ 1 << bit % 8);
  }
  void restore(long bit) const { write(bit, bytes_[static_cast<std::size_t>(bit / 8)]); }

 private:
  void write(long bit, int byte) const {
    const char value = static_cast<char>(byte);
    REQUIRE(::pwrite(descriptor_, &value, 1, bit / 8) == 1);
  }
  std::string bytes_;
  int descriptor_;
};

struct Count {
  long cases = 0;
  long named = 0;    ///< by verify
  long refused = 0;  ///< by a restart, which went on from the older step
  long exact = 0;    ///< loaded all the same, every element right
};

Count flip_every_bit(const TwoSteps& steps, const std::string& name) {
  const bool is_payload = name.starts_with("shard-");
  const BitFlipper file(steps.newest(name));
  Count count;
  examine(steps, [&](Checker& checker) {
    for (long bit = 0; bit < file.bits(); bit += bits_between_flips()) {
      CAPTURE(name, bit);
      const bool is_sampled = bit % bits_between_restarts() == 0;
      file.flip(bit);
      ++count.cases;
      const std::string said = is_payload && !is_sampled ? checker.lines() : checker.said();
      count.named += contains_text(said, name) ? 1 : 0;
      // What is said of manifest or index, whoever opens the checkpoint is told.
      const bool is_refused = is_payload ? checker.is_refused() : !said.empty();
      if (is_sampled) {
        REQUIRE(checker.restore() == (is_refused ? 10 : 20));
      }
      ++(is_refused ? count.refused : count.exact);
      file.restore(bit);
    }
    REQUIRE(checker.said().empty());
    REQUIRE(checker.restore() == 20);
  });
  return count;
}

}  // namespace

TEST_CASE("every flipped bit of every file of a checkpoint is named, and none is loaded") {
  const TwoSteps steps;
  const std::vector<std::string> files = names(steps.directory() / newer);
  REQUIRE(files == std::vector<std::string>{"MANIFEST.json", "index.h5", "shard-00000-of-00002.h5",
                                            "shard-00001-of-00002.h5"});
  for (const std::string& name : files) {
    const Count count = flip_every_bit(steps, name);
    CAPTURE(name);
    SUCCEED(name << ": " << count.cases << " bits flipped, " << count.named << " named, "
                 << count.refused << " refused, " << count.exact << " loaded exact");
    const long bits = 8 * static_cast<long>(fs::file_size(steps.newest(name)));
    CHECK(count.cases == (bits + bits_between_flips() - 1) / bits_between_flips());
    CHECK(count.named == count.cases);
    CHECK(count.refused + count.exact == count.cases);
    CHECK(count.refused >= 8 * 20 / bits_between_flips());  // at least the tensors' own bytes
    CHECK((name.starts_with("shard-") || count.exact == 0));
  }
}

TEST_CASE("no flipped bit of LATEST changes anything") {
  const TwoSteps steps;
  const BitFlipper latest(steps.directory() / "LATEST");
  REQUIRE(latest.bits() > 8 * 30);
  examine(steps, [&](Checker& checker) {
    for (long bit = 0; bit < latest.bits(); ++bit) {
      latest.flip(bit);
      REQUIRE(checker.said().empty());
      REQUIRE(checker.restore() == 20);
      latest.restore(bit);
    }
  });
}

namespace {

/// Does something to one file, looks, and puts it back.
void damage(const TwoSteps& steps, Checker& checker, const std::string& name,
            const std::string& bytes, Count& count) {
  const std::string before = read_bytes(steps.newest(name));
  if (bytes == before) {
    return;
  }
  write_bytes(steps.newest(name), bytes);
  ++count.cases;
  count.named += contains_text(checker.said(), name) ? 1 : 0;
  ++(checker.restore() == 10 ? count.refused : count.exact);
  write_bytes(steps.newest(name), before);
}

}  // namespace

TEST_CASE("a file cut at any 512 bytes, or a byte longer, is named and refused") {
  const TwoSteps steps;
  Count count;
  examine(steps, [&](Checker& checker) {
    for (const std::string& name : names(steps.directory() / newer)) {
      const std::string bytes = read_bytes(steps.newest(name));
      for (std::size_t size = 0; size < bytes.size(); size += 512) {
        damage(steps, checker, name, bytes.substr(0, size), count);
      }
      damage(steps, checker, name, bytes.substr(0, bytes.size() - 1), count);
      damage(steps, checker, name, bytes + '\0', count);
    }
  });
  CHECK(count.cases > 40);
  CHECK(count.named == count.cases);
  CHECK(count.refused == count.cases);
}

TEST_CASE("4 KiB of zeros anywhere are named, and never loaded") {
  const TwoSteps steps;
  Count count;
  examine(steps, [&](Checker& checker) {
    for (const std::string& name : names(steps.directory() / newer)) {
      const std::string bytes = read_bytes(steps.newest(name));
      for (std::size_t begin = 0; begin < bytes.size(); begin += 512) {
        std::string zeroed = bytes;
        const std::size_t length = std::min<std::size_t>(4096, bytes.size() - begin);
        damage(steps, checker, name, zeroed.replace(begin, length, length, '\0'), count);
      }
    }
  });
  CHECK(count.cases > 20);
  CHECK(count.named == count.cases);
  CHECK(count.refused > 20);
}

TEST_CASE("exchanged files, those of another step, and copies named like payloads are refused") {
  const TwoSteps steps;
  const std::vector<std::string> files = names(steps.directory() / newer);
  examine(steps, [&](Checker& checker) {
    Count count;
    for (const std::string& name : files) {
      damage(steps, checker, name, read_bytes(steps.directory() / older / name), count);
    }
    CHECK(count.cases == std::ssize(files));
    CHECK(count.named + 1 == count.cases);  // the manifest of step 10 finds fault with index.h5
    CHECK(count.refused == count.cases);
    for (std::size_t a = 0; a < files.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        CAPTURE(files[a], files[b]);
        const auto exchange = [&] {
          fs::rename(steps.newest(files[a]), steps.newest("x"));
          fs::rename(steps.newest(files[b]), steps.newest(files[a]));
          fs::rename(steps.newest("x"), steps.newest(files[b]));
        };
        exchange();
        const std::string said = checker.said();
        CHECK((contains_text(said, files[a]) || contains_text(said, files[b])));
        CHECK(checker.restore() == 10);
        exchange();
      }
    }
    for (const std::string& name : files) {
      for (const std::string copy : {"shard-00002-of-00003.h5", "MANIFEST.json.bak", "x"}) {
        CAPTURE(name, copy);
        fs::copy_file(steps.newest(name), steps.newest(copy));
        if (copy.starts_with("shard-")) {
          CHECK(contains_text(checker.said(), copy + " does not belong"));
          CHECK(checker.restore() == 10);
        } else {  // somebody's own, which no reader takes for a part of the checkpoint
          CHECK(checker.said().empty());
          CHECK(checker.restore() == 20);
        }
        fs::remove(steps.newest(copy));
      }
    }
    CHECK(checker.restore() == 20);
  });
}

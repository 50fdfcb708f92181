// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A preparation over an older set that dies, or whose calls fail, at every single call that
/// changes the file system: no reader sees an older file beside a newer one.
#include "save/crash_job.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/data/token_record.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cerrno>
#include <fstream>

using namespace fourfold;
using namespace fourfold::io_test;
using harness::ChildResult;
using harness::files_below;
namespace fs = std::filesystem;

namespace {

/// What a reader finds of one part.
enum class Found { older, newer, nothing };

/// The older set has tokens of "a" to "d", the newer one, of other lengths, of "A" to "D".
constexpr const char* older_text = "aaaa|bb|cc|ddd|";
constexpr const char* newer_text = "AAAAAAA|BBBB|C|DDDDDDDDD|";

Found part_in(const fs::path& bin) {
  try {
    const io::TokenFile file(bin);
    file.verify_index();
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.tokens()));
    file.read(0, tokens);
    const auto record = data::token_record_of(file);
    REQUIRE(record);
    data::verify_digests(file, *record);
    const bool is_newer = tokens.front() < 'a';
    for (const std::int32_t token : tokens) {
      REQUIRE((token < 'a') == is_newer);
    }
    return is_newer ? Found::newer : Found::older;
  } catch (const UserError& error) {
    REQUIRE(error.code() == ExitCode::config);  // no .idx; not: a damaged file, a wrong record
    return Found::nothing;
  }
}

/// Of both parts: older, newer or nothing, and never one of each age.
Found set_in(const fs::path& folder) {
  const Found train = part_in(folder / "t_train.bin");
  const Found validation = part_in(folder / "t_val.bin");
  REQUIRE((train == validation || train == Found::nothing || validation == Found::nothing));
  if (train != validation) {
    return Found::nothing;
  }
  return train;
}

ChildResult prepare(const fs::path& folder, const Disturbance& disturbance = {}) {
  return run_disturbed(
      {crash_program("preparer"), (folder / "t").string(), (folder / "text").string()}, folder,
      disturbance);
}

/// A folder with an older set, and the text of the newer one.
class Preparations : public Attempts {
 public:
  Preparations() {
    fs::create_directories(original());
    harness::write_bytes(original() / "text", older_text);
    REQUIRE(prepare(original()).exit_code == 0);
    older_ = files_below(original());
    harness::write_bytes(original() / "text", newer_text);
    newer_ = files_below(rehearse(prepare));
    REQUIRE(set_in(original()) == Found::older);
  }

  bool is_untouched(const fs::path& folder) const {
    auto files = files_below(folder);
    files["text"] = older_text;
    return files == older_;
  }
  /// The same preparation, undisturbed, after one that was not.
  void complete(const fs::path& folder) const {
    const ChildResult again = prepare(folder);
    CAPTURE(again.output);
    REQUIRE(again.exit_code == 0);
    REQUIRE(files_below(folder) == newer_);
  }

 private:
  std::map<std::string, std::string> older_;
  std::map<std::string, std::string> newer_;
};

}  // namespace

TEST_CASE("killed at any call, a preparation has left the older set, the newer one, or none") {
  const Preparations preparations;
  REQUIRE(preparations.calls() > 30);
  for (const char* how : {"before", "after"}) {
    std::map<Found, int> found;
    for (long at = 1; at <= preparations.calls(); ++at) {
      CAPTURE(how, at);
      const fs::path folder = preparations.fresh();
      REQUIRE(prepare(folder, {at, how}).exit_code == killed);
      ++found[set_in(folder)];
      preparations.complete(folder);
    }
    CHECK(found[Found::older] > 10);
    CHECK(found[Found::newer] >= 1);
    CHECK(found[Found::nothing] > 5);
  }
}

TEST_CASE("a disk that fills up leaves the older set as it was") {
  const Preparations preparations;
  for (const int error : {ENOSPC, EDQUOT, EIO}) {
    int untouched = 0;
    for (long at = 1; at <= preparations.calls(); ++at) {
      CAPTURE(error, at);
      const fs::path folder = preparations.fresh();
      const ChildResult result = prepare(folder, {at, std::to_string(error)});
      CAPTURE(result.output);
      const Found found = set_in(folder);
      REQUIRE((result.exit_code == 73 || (result.exit_code == 0 && found == Found::newer)));
      if (found == Found::older) {
        REQUIRE(preparations.is_untouched(folder));
        ++untouched;
      }
      preparations.complete(folder);
    }
    CHECK(untouched > 10);  // until the names change, and nothing needs room
  }
}

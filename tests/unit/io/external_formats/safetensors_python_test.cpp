// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "child_process.hpp"
#include "safetensors_by_hand.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/safetensors.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <string>
#include <utility>

using fourfold::harness::ScratchFolder;

namespace {

/// Tries every file with the package. What we take it must take; what it takes and we do not must
/// have a name twice, or an entry a member that the format does not know, or none of `null`.
constexpr const char* peer_script = R"(import json, struct, sys
from safetensors import SafetensorError, deserialize

def strange(data):
    """Whether only we are right to refuse it."""
    length = struct.unpack("<Q", data[:8])[0]
    seen = []
    def members(pairs):
        names = [name for name, _ in pairs]
        seen.append(len(names) != len(set(names)))
        entry = "dtype" in names and set(names) != {"dtype", "shape", "data_offsets"}
        seen.append(entry or any(value is None for _, value in pairs))
        return dict(pairs)
    header = data[8:8 + length]
    json.loads(header, object_pairs_hook=members)
    return any(seen) or not header.startswith(b"{")

both = ours = theirs = neither = 0
stream = open(sys.argv[1], "rb")
while head := stream.read(5):
    size, accepted = struct.unpack("<IB", head)
    data = stream.read(size)
    try:
        deserialize(data)
        taken = True
    except SafetensorError:
        taken = False
    if accepted and not taken:
        sys.exit("only we accept %r" % data)
    if taken and not accepted and not strange(data):
        sys.exit("only we refuse %r" % data)
    both += accepted and taken
    theirs += taken and not accepted
    neither += not taken
print(both, "accepted by both,", theirs, "refused by us alone,", neither, "by both")
assert both > 10 and neither > 1000
)";

}  // namespace

TEST_CASE("hostile files are judged as the safetensors package judges them") {
  const char* python = std::getenv("FOURFOLD_TEST_PYTHON");
  if (python == nullptr ||
      fourfold::harness::run_child({python, "-c", "import safetensors"}).exit_code != 0) {
    SKIP("FOURFOLD_TEST_PYTHON names no Python with safetensors");
  }
  const ScratchFolder scratch;
  std::string tried;
  auto files = fourfold::harness::mutations_of(fourfold::harness::small_safetensors(), 30);
  for (std::string& bytes :
       fourfold::harness::mutations_of(fourfold::harness::safetensors_of_lists(), 30)) {
    files.push_back(std::move(bytes));
  }
  for (const std::string& bytes : files) {
    const std::filesystem::path path = scratch.write("model.safetensors", bytes);
    char accepted = 1;
    try {
      const fourfold::io::SafetensorsFile file(path);
    } catch (const fourfold::UserError&) {
      accepted = 0;
    }
    for (int i = 0; i < 4; ++i) {
      tried.push_back(static_cast<char>((bytes.size() >> (8 * i)) & 0xff));
    }
    tried.push_back(accepted);
    tried += bytes;
  }
  const auto result =
      fourfold::harness::run_child({python, scratch.write("judge.py", peer_script).string(),
                                    scratch.write("judged.bin", tried).string()});
  INFO(result.output);
  CHECK(result.exit_code == 0);
}

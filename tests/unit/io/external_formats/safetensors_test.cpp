// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "safetensors_by_hand.hpp"
#include "scratch_folder.hpp"
#include "source_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/mapped_file.hpp>
#include <fourfold/io/safetensors.hpp>
#include <fourfold/io/stored_array.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::DType;
using fourfold::ExitCode;
using fourfold::Shape;
using fourfold::UserError;
using fourfold::harness::read_bytes;
using fourfold::harness::safetensors_by_hand;
using fourfold::harness::ScratchFolder;
using fourfold::io::SafetensorsFile;
using fourfold::io::SafetensorsFolder;
using fourfold::io::StoredArray;

namespace {

template <class T>
std::vector<T> values_of(const StoredArray& array) {
  std::vector<T> values(array.bytes() / sizeof(T));
  array.read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

const StoredArray& array_named(const SafetensorsFile& file, const std::string& name) {
  const auto found = std::ranges::find(file.arrays(), name, &StoredArray::name);
  REQUIRE(found != file.arrays().end());
  return *found;
}

std::string refusal(const std::filesystem::path& path, ExitCode code = ExitCode::data_corrupt) {
  try {
    const SafetensorsFile file(path);
  } catch (const UserError& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "accepted";
}

std::string folder_refusal(const ScratchFolder& scratch) {
  try {
    const SafetensorsFolder folder(scratch.path());
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a file of the safetensors package is read: all its types, shapes and texts") {
  const SafetensorsFile file(fourfold::harness::golden_folder() + "/hf/types.safetensors");
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.metadata().at("note") == "caf\u00e9");
  REQUIRE(file.arrays().size() == 8);
  const StoredArray& odd = array_named(file, "odd");
  CHECK(odd.dtype() == DType::f32);
  CHECK(odd.shape() == Shape{2, 3});
  const std::vector<float> thirds = values_of<float>(odd);
  for (std::size_t i = 0; i < thirds.size(); ++i) {
    CHECK(thirds[i] == static_cast<float>(i) / 3.0F);
  }
  CHECK(values_of<double>(array_named(file, "scalar")) == std::vector<double>{-0.1});
  CHECK(array_named(file, "scalar").shape() == Shape{});
  CHECK(array_named(file, "empty").shape() == Shape{0, 4});
  CHECK(values_of<std::int64_t>(array_named(file, "caf\u00e9 \"quoted\"")) ==
        std::vector<std::int64_t>{7});
  CHECK(static_cast<float>(values_of<fourfold::BFloat16>(array_named(file, "brain"))[0]) ==
        3.140625F);
  CHECK(static_cast<float>(values_of<fourfold::Float16>(array_named(file, "half"))[2]) == 65504.0F);
  CHECK(values_of<std::uint8_t>(array_named(file, "mask")) == std::vector<std::uint8_t>{1, 0, 1});
  CHECK(!array_named(file, "mask").dtype());
  CHECK(array_named(file, "tiny").type() == "F8_E4M3");
}

TEST_CASE("a header is byte for byte what the package writes") {
  const std::filesystem::path path(fourfold::harness::golden_folder() +
                                   "/hf/llama_qkv_bias/model.safetensors");
  const SafetensorsFile file(path);
  std::vector<fourfold::io::ArrayToWrite> arrays;
  std::uint64_t bytes = 0;
  for (const StoredArray& array : file.arrays()) {
    arrays.push_back({array.name(), *array.dtype(), array.shape()});
    bytes += array.bytes();
  }
  const std::string header = fourfold::io::safetensors_header(arrays, file.metadata());
  const std::string whole = read_bytes(path);
  CHECK(header.size() % 8 == 0);
  CHECK(header == whole.substr(0, whole.size() - bytes));
}

TEST_CASE("what does not hold together is refused with the reason") {
  struct Case {
    std::string header;
    std::size_t data_bytes;
    std::string reason;
  };
  const Case hostile = GENERATE(values<Case>({
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7, "end at 0"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9, "its arrays take 8"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12, "end at 0"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
       6, "'b' at bytes 2 to 6"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       4, "end at 4"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
       6, "end at 2"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "ascending"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8, "not what its shape"},
      {R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1, "not what its shape"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
       "not what its shape"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[18446744073709551608,0]}})", 8,
       "where it does not belong"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "the number -2"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8, "the number 2.0"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", 8, "more than 2 numbers"},
      {R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", 8, "unknown type 'F33'"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", 8, "without dtype, shape"},
      {R"({"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})", 8, "twice"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
       8, "two entries 'a' that contradict each other"},
      {R"({"a":{"dtype":"I32","shape":[2],"data_offsets":[0,8]},)"
       R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       8, "two entries 'a' that contradict each other"},
      {R"({"__metadata__":null,"__metadata__":{}})", 0, "two entries '__metadata__'"},
      {R"({"a":null})", 0, "null where it does not belong"},
      {R"({"a":[[[[[[[[[[]]]]]]]]]]})", 0, "a list where it does not belong"},
      // Entries as lists, and types as objects: of the library's own refusals.
      {R"({"a":["F32",[2],[0,8],7]})", 8, "the number 7 where it does not belong"},
      {R"({"a":["F32",[2],[0,8],"x"]})", 8, "more than 3 members in the entry 'a'"},
      {R"({"a":["F32",[2],[0,8],{}]})", 8, "more than 3 members in the entry 'a'"},
      {R"({"a":["F32",[2]]})", 8, "without dtype, shape"},
      {R"({"a":[["F32"],[2],[0,8]]})", 8, "a list where it does not belong"},
      {R"({"a":[[2],"F32",[0,8]]})", 8, "a list where it does not belong"},
      {R"({"a":["F32",2,[0,8]]})", 8, "the number 2 where it does not belong"},
      {R"({"a":["F32",null,[0,8]]})", 8, "null where it does not belong"},
      {R"({"a":[]})", 0, "without dtype, shape"},
      {R"({"__metadata__":[],"a":["F32",[2],[0,8]]})", 8, "a list where it does not belong"},
      {R"([["a",["F32",[2],[0,8]]]])", 8, "no JSON object"},
      {R"({"a":{"dtype":{"F32":1},"shape":[2],"data_offsets":[0,8]}})", 8, "the number 1"},
      {R"({"a":{"dtype":{"F32":null,"F16":null},"shape":[2],"data_offsets":[0,8]}})", 8, "several"},
      {R"({"a":{"dtype":{},"shape":[2],"data_offsets":[0,8]}})", 8, "unknown type ''"},
      {R"({"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})", 8, "a list"},
      {R"({"a":{"dtype":"F32","shape":{"0":2},"data_offsets":[0,8]}})", 8, "an object"},
      {R"({"__metadata__":{"format":1}})", 0, "the number 1"},
      {R"({"a":7})", 0, "where it does not belong"},
      {R"({"a":{"dtype":"F32","shape":[1e999],"data_offsets":[0,8]}})", 8, "no JSON from byte"},
      {R"([1,2])", 0, "no JSON object"},
      {std::string("{}\0{", 4), 0, "no JSON object"},
      {R"({} {})", 0, "no JSON from byte"},
      {R"({"a\ud800":1})", 0, "no JSON from byte"},
      {"{\"a\xff\":1}", 0, "no JSON from byte"},
      {"", 0, "no JSON object"},
  }));
  const ScratchFolder scratch;
  INFO(hostile.header);
  const std::string told = refusal(
      scratch.write("model.safetensors", safetensors_by_hand(hostile.header, hostile.data_bytes)));
  CHECK_THAT(told, ContainsSubstring(hostile.reason));
  CHECK_THAT(told, ContainsSubstring("model.safetensors"));
}

TEST_CASE("what the format's own library takes is no damage") {
  const auto [header, names] = GENERATE(table<std::string, std::vector<std::string>>({
      {R"({"__metadata__":null,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", {"a"}},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":null})", {"a"}},
      {R"({"__metadata__":{"a":"1","a":"2"},"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
       {"a"}},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", {"a"}},
      {R"({"a":{"more":{"dtype":[1,{"shape":null}]},"dtype":"F32","shape":[2],)"
       R"("data_offsets":[0,8],"x":-1.5},"b":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})",
       {"a", "b"}},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       {"a"}},
      {" {\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}\n", {"a"}},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}})", {"a"}},
      {R"({"a":["F32",[2],[0,8]]})", {"a"}},
      {R"({"a":["F32",[1],[0,4]],"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
       {"a", "b"}},
      {R"({"a":{"dtype":{"F32":null},"shape":[2],"data_offsets":[0,8]}})", {"a"}},
      {R"({"a":[{"F32":null},[2],[0,8]]})", {"a"}},
  }));
  const ScratchFolder scratch;
  INFO(header);
  const SafetensorsFile file(scratch.write("x", safetensors_by_hand(header, 8)));
  std::vector<std::string> found;
  for (const StoredArray& array : file.arrays()) {
    found.push_back(array.name());
  }
  CHECK(found == names);
}

TEST_CASE("a length that is no header's is refused before memory is taken") {
  const ScratchFolder scratch;
  std::string bytes = safetensors_by_hand("{}", 0);
  CHECK(refusal(scratch.write("whole", bytes)) == "accepted");
  bytes[4] = 1;  // 4 GiB
  CHECK_THAT(refusal(scratch.write("long", bytes)), ContainsSubstring("4294967298"));
  bytes.replace(0, 8, 8, '\xff');
  CHECK_THAT(refusal(scratch.write("longest", bytes)), ContainsSubstring("18446744073709551615"));
  CHECK_THAT(refusal(scratch.write("none", "1234567")), ContainsSubstring("has 7 bytes"));
  // A header of 100 MB that is one list in another.
  std::string nested = R"({"a":)";
  nested.append(50'000'000, '[');
  CHECK_THAT(refusal(scratch.write("nested", safetensors_by_hand(nested, 0))),
             ContainsSubstring("a list where it does not belong"));
}

TEST_CASE("whatever byte of a header is changed, what is accepted holds together") {
  const ScratchFolder scratch;
  const std::filesystem::path path = scratch / "model.safetensors";
  std::size_t accepted = 0;
  const std::string whole =
      GENERATE(fourfold::harness::small_safetensors(), fourfold::harness::safetensors_of_lists());
  for (const std::string& bytes : fourfold::harness::mutations_of(whole, 30)) {
    fourfold::harness::write_bytes(path, bytes);
    try {
      const SafetensorsFile file(path);
      ++accepted;
      std::set<std::string> names;
      std::vector<std::byte> data;
      for (const StoredArray& array : file.arrays()) {
        CHECK(names.insert(array.name()).second);
        data.resize(data.size() + array.bytes());
        array.read(0, std::span(data).last(array.bytes()));
      }
      // Nothing of the header is taken for data, and no data are left out.
      CHECK(std::ranges::count(data, std::byte{'x'}) == 30);
      CHECK(data.size() == 30);
    } catch (const UserError& error) {
      CHECK(error.code() == ExitCode::data_corrupt);
    }
  }
  CHECK(accepted > 10);  // other names and texts
}

TEST_CASE("a folder has one file, or those of its index") {
  const ScratchFolder scratch;
  CHECK_THAT(folder_refusal(scratch), ContainsSubstring("holds neither"));
  const auto one = [](const char* name, const char* bytes) {
    return safetensors_by_hand(std::string(R"({")") + name +
                                   R"(":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                               0) +
           bytes;
  };
  scratch.write("x.safetensors", one("a", "1234"));
  scratch.write("y.safetensors", one("b", "5678"));
  const auto indexed = [&](const std::string& map) {
    scratch.write(fourfold::io::safetensors_index_name, R"({"weight_map":{)" + map + "}}");
    return folder_refusal(scratch);
  };
  REQUIRE(indexed(R"("b":"y.safetensors","a":"x.safetensors")") == "accepted");
  const SafetensorsFolder folder(scratch.path());
  REQUIRE(folder.arrays().size() == 2);
  CHECK(values_of<char>(*folder.find("b")) == std::vector<char>{'5', '6', '7', '8'});
  CHECK(folder.find("c") == nullptr);
  CHECK(folder.find("a ") == nullptr);

  CHECK_THAT(indexed(R"("a":"y.safetensors","b":"x.safetensors")"),
             ContainsSubstring("does not say"));
  CHECK_THAT(indexed(R"("a":"x.safetensors","c":"x.safetensors")"),
             ContainsSubstring("2 arrays are in x.safetensors, which has 1"));
  CHECK_THAT(indexed(R"("a":"x.safetensors","a":"y.safetensors")"),
             ContainsSubstring("says that 'a' is in x.safetensors and in y.safetensors"));
  CHECK_THAT(indexed(R"("a":"missing.safetensors")"), ContainsSubstring("missing.safetensors"));
  CHECK_THAT(indexed(R"("a":1)"), ContainsSubstring("in which file"));
  CHECK_THAT(indexed(R"("a":1e999)"), ContainsSubstring("'a' is in '1e999', which is no file"));
  // transformers reads it with Python, and nobody needs the size.
  scratch.write(fourfold::io::safetensors_index_name,
                R"({"metadata":{"total_size":Infinity,"x":[1e999,NaN]},)"
                R"("weight_map":{"a":"x.safetensors","b":"y.safetensors","a":"x.safetensors"}})");
  CHECK(folder_refusal(scratch) == "accepted");
  scratch.write(fourfold::io::safetensors_index_name, "[]");
  CHECK_THAT(folder_refusal(scratch), ContainsSubstring("weight_map"));
  scratch.write(fourfold::io::safetensors_index_name, std::string(100'000, '['));
  CHECK_THAT(folder_refusal(scratch), ContainsSubstring("nested too deep"));
  scratch.write(fourfold::io::safetensors_index_name, R"({"weight_map":{"a":"x.saf)");
  CHECK_THAT(folder_refusal(scratch), ContainsSubstring("line 1, byte 26: is not JSON"));
}

TEST_CASE("an index leads nowhere but into its folder") {
  const ScratchFolder outside;
  const std::string good =
      safetensors_by_hand(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4);
  const std::filesystem::path secret = outside.write("secret.safetensors", good);
  const ScratchFolder scratch;
  const auto refusal_of = [&](const std::string& name) {
    scratch.write(fourfold::io::safetensors_index_name,
                  R"({"weight_map":{"a":")" + name + R"("}})");
    return folder_refusal(scratch);
  };
  std::filesystem::create_directory(scratch / "sub");
  std::filesystem::copy(secret, scratch / "sub");
  std::filesystem::copy(secret, scratch / ".hidden.safetensors");
  for (const std::string& name :
       {"../" + secret.parent_path().filename().string() + "/secret.safetensors", secret.string(),
        std::string("sub/secret.safetensors"), std::string("./x.safetensors"), std::string(".."),
        std::string(""), std::string(".hidden.safetensors"), std::string("x.bin"),
        std::string("x.safetensors\\u0000y.safetensors")}) {
    INFO(name);
    CHECK_THAT(refusal_of(name), ContainsSubstring("no file of this folder"));
  }
  std::filesystem::create_directory(scratch / "folder.safetensors");
  CHECK_THAT(refusal_of("folder.safetensors"), ContainsSubstring("not a regular file"));
}

TEST_CASE("links that lie in the folder are followed, as in the cache of Hugging Face") {
  const ScratchFolder blobs;
  const std::filesystem::path blob = blobs.write(
      "0a1b2c", safetensors_by_hand(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4));
  const ScratchFolder scratch;
  std::filesystem::create_symlink(blob, scratch / "link.safetensors");
  std::filesystem::create_symlink(blobs.write("3d4e", R"({"weight_map":{"a":"link.safetensors"}})"),
                                  scratch / fourfold::io::safetensors_index_name);
  CHECK(folder_refusal(scratch) == "accepted");
  std::filesystem::create_symlink("link.safetensors", scratch / "model.safetensors");
  CHECK_THAT(folder_refusal(scratch),
             ContainsSubstring("says that 'a' is in link.safetensors (whose weights are meant"));
  std::filesystem::remove(scratch / "model.safetensors");
  std::filesystem::remove(scratch / fourfold::io::safetensors_index_name);
  // Over another link, and with a way that begins at the link.
  std::filesystem::create_symlink("link.safetensors", scratch / "model.safetensors");
  CHECK(folder_refusal(scratch) == "accepted");
  for (const char* target : {"nowhere", "model.safetensors", "/dev/zero"}) {
    INFO(target);
    std::filesystem::remove(scratch / "model.safetensors");
    std::filesystem::create_symlink(target, scratch / "model.safetensors");
    CHECK_THAT(folder_refusal(scratch), ContainsSubstring("model.safetensors: "));
  }
  std::filesystem::remove(scratch / "model.safetensors");
  std::filesystem::create_symlink("nowhere", scratch / "model.safetensors");
  CHECK_THAT(folder_refusal(scratch), ContainsSubstring("is a symbolic link to nowhere"));
}

TEST_CASE("a small file is read whole, a large one is not") {
  const ScratchFolder scratch;
  const std::filesystem::path path = scratch.write("config.json", "{}\n");
  CHECK(fourfold::io::text_of_file(path, 3) == "{}\n");
  CHECK_THROWS_AS(fourfold::io::text_of_file(path, 2), UserError);
  CHECK_THROWS_AS(fourfold::io::text_of_file(scratch / "none", 2), UserError);
  CHECK_THROWS_AS(fourfold::io::text_of_file("/dev/zero", 2), UserError);
}

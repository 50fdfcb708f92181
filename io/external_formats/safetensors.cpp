// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "external_formats/external_file.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/io/mapped_file.hpp>
#include <fourfold/io/safetensors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace fourfold::io {
namespace {

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t longest_header = 100'000'000;  ///< as the format says
constexpr std::uint64_t longest_index = std::uint64_t{64} << 20;
constexpr const char* single_name = "model.safetensors";

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& what) {
  throw UserError(
      ExitCode::data_corrupt,
      format_message(
          "{}: {}; the file is damaged or not one of safetensors: fetch or make it again",
          path.string(), what));
}

/// The JSON of a file's header. @throws UserError (data_corrupt)
std::string header_text(const std::filesystem::path& path, const InputFile& opened) {
  const std::uint64_t size = opened.size_bytes();
  std::uint64_t length = 0;
  static_assert(std::endian::native == std::endian::little);
  if (size < length_bytes) {
    damaged(path, format_message("has {} bytes, fewer than its header's length takes", size));
  }
  Defect defect = opened.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  if (!defect && (length > longest_header || length > size - length_bytes)) {
    damaged(path, format_message("says that its header has {} bytes, and {} follow", length,
                                 size - length_bytes));
  }
  std::string text(defect ? 0 : length, '\0');
  if (!defect) {
    defect = opened.read_at(length_bytes, std::as_writable_bytes(std::span(text)));
  }
  if (defect) {
    damaged(path, *defect);
  }
  return text;
}

/// Whether the ranges of `arrays`, in order, fill `bytes` bytes.
Defect gap_or_overlap(std::span<const StoredArray::Description> arrays, std::uint64_t bytes) {
  std::uint64_t end = 0;
  for (const StoredArray::Description& array : arrays) {
    if (array.first_byte != end || array.bytes > bytes - end) {
      return fmt::format("has '{}' at bytes {} to {} of {}, and the arrays before it end at {}",
                         printable(array.name), array.first_byte, array.first_byte + array.bytes,
                         bytes, end);
    }
    end += array.bytes;
  }
  if (end != bytes) {
    return fmt::format("has {} bytes after its header, and its arrays take {}", bytes, end);
  }
  return std::nullopt;
}

/// A name that cannot lead anywhere but to a file in the same folder.
bool is_plain(std::string_view name) noexcept {
  return name.ends_with(".safetensors") && !name.starts_with('.') &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) {
  const std::shared_ptr<const InputFile> opened = open_external(path);
  const std::string text = header_text(path, *opened);
  std::vector<StoredArray::Description> arrays;
  Defect defect = parse_safetensors_header(text, arrays, metadata_);
  const std::uint64_t start = length_bytes + text.size();
  if (!defect) {
    std::ranges::sort(arrays, {}, [](const StoredArray::Description& array) {
      return std::pair(array.first_byte, array.bytes);
    });
    defect = gap_or_overlap(arrays, opened->size_bytes() - start);
  }
  if (defect) {
    damaged(path, *defect);
  }
  for (StoredArray::Description& array : arrays) {
    array.first_byte += start;
    arrays_.emplace_back(opened, path, std::move(array));
  }
}

namespace {

/// The arrays of the files that an index names. @throws UserError
std::vector<StoredArray> indexed_arrays(const std::filesystem::path& folder) {
  const std::filesystem::path index = folder / safetensors_index_name;
  std::map<std::string, std::string> file_of;
  if (const Defect defect = parse_safetensors_index(text_of_file(index, longest_index), file_of)) {
    damaged(index, *defect);
  }
  std::map<std::string, std::size_t> arrays_in;
  for (const auto& [array, file] : file_of) {
    if (!is_plain(file)) {
      damaged(index, format_message("says that '{}' is in '{}', which is no file of this folder",
                                    printable(array), printable(file)));
    }
    ++arrays_in[file];
  }
  std::vector<StoredArray> arrays;
  for (const auto& [file, count] : arrays_in) {
    const SafetensorsFile opened(folder / file);
    for (const StoredArray& array : opened.arrays()) {
      const auto found = file_of.find(array.name());
      if (found == file_of.end() || found->second != file) {
        damaged(index,
                format_message("does not say that '{}' is in {}", printable(array.name()), file));
      }
      arrays.push_back(array);
    }
    if (opened.arrays().size() != count) {
      damaged(index, format_message("says that {} arrays are in {}, which has {}", count, file,
                                    opened.arrays().size()));
    }
  }
  return arrays;
}

/// transformers would take the one file, and never look at the others.
void refuse_other_index(const std::filesystem::path& folder) {
  const std::filesystem::path index = folder / safetensors_index_name;
  if (kind_of(index) == EntryKind::missing) {
    return;
  }
  std::map<std::string, std::string> file_of;
  if (const Defect defect = parse_safetensors_index(text_of_file(index, longest_index), file_of)) {
    damaged(index, *defect);
  }
  for (const auto& [array, file] : file_of) {
    if (file != single_name) {
      throw UserError(
          ExitCode::config,
          format_message("{}: holds {}, and {} says that '{}' is in {} (whose weights are meant is "
                         "not known); move away those that are not the model's",
                         folder.string(), single_name, safetensors_index_name, printable(array),
                         printable(file)));
    }
  }
}

}  // namespace

SafetensorsFolder::SafetensorsFolder(const std::filesystem::path& folder) {
  const std::filesystem::path single = folder / single_name;
  if (kind_of(single) != EntryKind::missing) {
    refuse_other_index(folder);
    const SafetensorsFile file(single);
    arrays_.assign(file.arrays().begin(), file.arrays().end());
  } else if (kind_of(folder / safetensors_index_name) != EntryKind::missing) {
    arrays_ = indexed_arrays(folder);
  } else {
    throw UserError(
        ExitCode::config,
        format_message("{}: holds neither {} nor {} (weights of other formats are not read); save "
                       "the model with transformers' save_pretrained and name that folder",
                       folder.string(), single_name, safetensors_index_name));
  }
  std::ranges::sort(arrays_, {}, &StoredArray::name);
}

const StoredArray* SafetensorsFolder::find(std::string_view name) const noexcept {
  const auto found = std::ranges::lower_bound(
      arrays_, name, {}, [](const StoredArray& array) { return std::string_view(array.name()); });
  return found == arrays_.end() || found->name() != name ? nullptr : &*found;
}

std::string safetensors_file_name(std::size_t file, std::size_t files) {
  FOURFOLD_EXPECT(file < files);
  return files == 1 ? single_name
                    : fmt::format("model-{:05}-of-{:05}.safetensors", file + 1, files);
}

}  // namespace fourfold::io

// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "documents.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/data/prepare.hpp>
#include <fourfold/data/token_record.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/mapped_file.hpp>
#include <fourfold/io/token_file_writer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace fourfold::data {
namespace {

std::string_view text_of(const io::MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// One output under way: its token files and its record.
class Part {
 public:
  Part(const std::filesystem::path& prefix, std::int32_t vocab_size)
      : prefix_(prefix.string()),
        tokens_(prefix, io::megatron_type(vocab_size)),
        record_(prefix_ + ".json") {}

  void add(std::span<const std::int32_t> ids) { tokens_.add_document(ids); }
  std::int64_t tokens() const noexcept { return tokens_.tokens(); }
  PreparedPart facts() const { return {prefix_ + ".bin", tokens_.tokens(), tokens_.documents()}; }

  void require_not_empty(const char* remedy) const {
    if (tokens_.tokens() == 0) {
      throw UserError(
          ExitCode::config,
          fmt::format("{}.bin would be empty (no document falls into it); {}", prefix_, remedy));
    }
  }

  void publish(TokenRecord record) {
    record.tokens = tokens_.tokens();
    record.documents = tokens_.documents();
    record_.write(to_json(record));
    record_.publish();
    tokens_.publish();
  }

 private:
  std::string prefix_;
  io::TokenFileWriter tokens_;
  io::AtomicFile record_;
};

class Preparation {
 public:
  Preparation(Tokenizer& tokenizer, const PrepareOptions& options,
              const std::function<void(const PrepareProgress&)>& progress)
      : tokenizer_(tokenizer), options_(options), report_(progress) {
    if (options.append_end_of_text && !tokenizer.end_of_text()) {
      throw UserError(ExitCode::config,
                      fmt::format("the tokenizer has no end-of-text token ({}); leave --append-eot "
                                  "away or use another tokenizer",
                                  tokenizer.description()));
    }
    for (const std::filesystem::path& input : options.inputs) {
      files_.emplace_back(input).advise(io::MappedFile::Access::sequential);
      if (files_.back().bytes().empty()) {
        throw UserError(ExitCode::data_corrupt,
                        fmt::format("{}: is empty (there is no text to prepare); leave it away",
                                    input.string()));
      }
      progress_.total_bytes += std::ssize(files_.back().bytes());
    }
    const std::string prefix = options.output_prefix.string();
    if (options.validation_fraction > 0) {
      parts_.emplace_back(prefix + "_train", tokenizer.vocab_size());
      parts_.emplace_back(prefix + "_val", tokenizer.vocab_size());
    } else {
      parts_.emplace_back(prefix, tokenizer.vocab_size());
    }
  }

  std::vector<PreparedPart> run() {
    for (const io::MappedFile& file : files_) {
      prepare_file(file);
    }
    parts_.front().require_not_empty("name inputs with text in them");
    parts_.back().require_not_empty("raise --validation-fraction or prepare more text");
    std::vector<PreparedPart> written;
    for (Part& part : parts_) {
      part.publish(record());
      written.push_back(part.facts());
    }
    return written;
  }

 private:
  void prepare_file(const io::MappedFile& file) {
    const std::string_view text = text_of(file);
    const auto held_back_bytes =
        static_cast<std::size_t>(options_.validation_fraction * static_cast<double>(text.size()));
    const std::size_t validation_begin = text.size() - held_back_bytes;
    const std::int64_t before = progress_.done_bytes;
    const auto visit = [&](const detail::Document& document) {
      add_document(document, text.size(), validation_begin);
      progress_.done_bytes = before + static_cast<std::int64_t>(document.end_byte);
      report_(progress_);
    };
    if (detail::format_of(file.path(), text, options_) == InputFormat::json_lines) {
      detail::for_each_json_line(file.path(), text, visit);
    } else {
      detail::for_each_document(text, options_.document_separator, visit);
    }
    progress_.done_bytes = before + std::ssize(text);
  }

  /// Puts a document where it belongs: training, validation, or one piece into each when it is a
  /// whole file.
  void add_document(const detail::Document& document, std::size_t file_bytes,
                    std::size_t validation_begin) {
    if (document.begin_byte >= validation_begin) {
      add_text(parts_.back(), document.text);
      return;
    }
    const bool is_whole_file = document.text.size() == file_bytes;
    if (!is_whole_file || validation_begin == file_bytes) {
      add_text(parts_.front(), document.text);
      return;
    }
    const std::size_t cut =
        std::min(document.text.find('\n', validation_begin), document.text.size() - 1) + 1;
    add_text(parts_.front(), document.text.substr(0, cut));
    add_text(parts_.back(), document.text.substr(cut));
  }

  void add_text(Part& part, std::string_view text) {
    if (text.empty()) {
      return;
    }
    ids_.clear();
    tokenizer_.encode(text, ids_);
    if (ids_.empty()) {
      return;
    }
    if (options_.append_end_of_text) {
      ids_.push_back(*tokenizer_.end_of_text());
    }
    part.add(ids_);
    progress_.tokens += std::ssize(ids_);
  }

  TokenRecord record() const {
    TokenRecord record;
    record.tokenizer = options_.tokenizer_name == "byte"
                           ? options_.tokenizer_name
                           : std::filesystem::absolute(options_.tokenizer_name).string();
    record.tokenizer_description = tokenizer_.description();
    record.vocab_size = tokenizer_.vocab_size();
    record.end_of_text = tokenizer_.end_of_text();
    record.end_of_text_appended = options_.append_end_of_text;
    for (const std::filesystem::path& input : options_.inputs) {
      record.inputs.push_back(input.string());
    }
    return record;
  }

  Tokenizer& tokenizer_;
  const PrepareOptions& options_;
  const std::function<void(const PrepareProgress&)>& report_;
  std::vector<io::MappedFile> files_;
  std::deque<Part> parts_;  ///< training and validation, or one for all; a part cannot move
  PrepareProgress progress_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

namespace detail {

void for_each_document(std::string_view text, const std::optional<std::string>& separator,
                       const VisitDocument& visit) {
  if (!separator) {
    visit({text, 0, text.size()});
    return;
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(*separator, begin), text.size());
    const std::size_t next = std::min(end + separator->size(), text.size());
    visit({text.substr(begin, end - begin), begin, next});
    begin = next;
  }
}

}  // namespace detail

std::vector<PreparedPart> prepare(Tokenizer& tokenizer, const PrepareOptions& options,
                                  const std::function<void(const PrepareProgress&)>& progress) {
  FOURFOLD_EXPECT(!options.inputs.empty());
  FOURFOLD_EXPECT(options.validation_fraction >= 0 && options.validation_fraction < 1);
  FOURFOLD_EXPECT(!options.document_separator || !options.document_separator->empty());
  return Preparation(tokenizer, options, progress).run();
}

void check_part(const PreparedPart& part, std::int32_t vocab_size) {
  const io::TokenFile file(part.bin);
  file.advise(io::MappedFile::Access::sequential);
  file.verify_index();
  std::vector<std::int32_t> chunk(1 << 16);
  for (std::int64_t first = 0; first < file.tokens(); first += std::ssize(chunk)) {
    const auto count =
        static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(chunk), file.tokens() - first));
    file.read(first, std::span(chunk).first(count), vocab_size);
  }
}

}  // namespace fourfold::data

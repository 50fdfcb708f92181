// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "prepare/documents.hpp"
#include "unicode/unicode_text.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/fatal_exit.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/data/prepare.hpp>
#include <fourfold/data/token_record.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/made_folders.hpp>
#include <fourfold/io/mapped_file.hpp>
#include <fourfold/io/own_file.hpp>
#include <fourfold/io/token_file.hpp>
#include <fourfold/io/token_file_writer.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <system_error>
#include <utility>

namespace fourfold::data {
namespace {

/// Of the outputs.
std::vector<std::string> prefixes_of(const PrepareOptions& options) {
  const std::string prefix = options.output_prefix.string();
  return options.validation_fraction > 0 ? std::vector{prefix + "_train", prefix + "_val"}
                                         : std::vector{prefix};
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

bool is_empty_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ignored)) &&
         std::filesystem::is_empty(path, ignored);
}

/// @throws UserError, of whatever code, when they are not the files of the record beside them
void verify_own_tokens(const std::filesystem::path& bin, const std::filesystem::path& idx) {
  const auto record = read_token_record(bin);
  FOURFOLD_EXPECT(record);
  if (is_there(idx)) {
    const io::TokenFile tokens(bin);
    token_record_of(tokens);
    verify_digests(tokens, *record);
  } else if (is_there(bin)) {
    verify_lone_tokens(bin, *record);
  }
}

/// Beside a record of ours, or what begins like one, may lie what somebody else has put there.
void refuse_other_tokens(const std::filesystem::path& bin, const std::filesystem::path& idx) {
  try {
    verify_own_tokens(bin, idx);
  } catch (const UserError& error) {
    throw UserError(
        ExitCode::config,
        format_message(
            "{}, {}: would be replaced, and are not the token files that the record beside them "
            "describes ({}); choose another --output, or move them and the record away",
            bin.string(), idx.string(), MadeLines{error.what()}));
  }
}

/// A record of such a name would be taken for a tokenizer, or for a model's configuration.
void refuse_name_of_tokenizer(const std::filesystem::path& record) {
  for (const char* const name : {"tokenizer.json", "tokenizer_config.json", "vocab.json",
                                 "config.json", "special_tokens_map.json"}) {
    if (record.filename() == name) {
      throw UserError(
          ExitCode::config,
          format_message("{}: would be the name of the token files' record, and is the one of a "
                         "tokenizer's or a model's file; choose another --output",
                         record.string()));
    }
  }
}

/// A file would take the place of the link, and what it leads to would go stale.
void refuse_link(const std::filesystem::path& output) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(output, ignored))) {
    throw UserError(ExitCode::config,
                    format_message("{}: is a symbolic link, and would be replaced by a file; "
                                   "remove it, or name with --output the place that it leads to",
                                   output.string()));
  }
}

/// Whose name is not UTF-8 could not be found again by the record.
void require_name_for_record(const Tokenizer& tokenizer) {
  const std::string name = tokenizer.files().name();
  if (!is_utf8(name)) {
    throw UserError(
        ExitCode::config,
        format_message("the tokenizer {} cannot be named in the record of the token files (its "
                       "path is not UTF-8); rename what is not, or copy the tokenizer elsewhere",
                       printable(name)));
  }
}

/// An older set is replaced; inputs, and what other programs have made, never. Token files do not
/// say who made them: the record beside them does.
void refuse_to_replace_others(const std::string& prefix, const PrepareOptions& options) {
  const std::array<std::filesystem::path, 3> outputs{prefix + ".json", prefix + ".bin",
                                                     prefix + ".idx"};
  for (const std::filesystem::path& output : outputs) {
    io::refuse_input_as_output(output, options.inputs);
    refuse_link(output);
  }
  refuse_name_of_tokenizer(outputs[0]);
  io::refuse_foreign_file(outputs[0], own_token_record);
  if (io::is_own_file(outputs[0], own_token_record)) {
    refuse_other_tokens(outputs[1], outputs[2]);
    return;
  }
  for (const std::filesystem::path& output : outputs) {
    if (is_there(output) && !is_empty_file(output)) {
      throw UserError(
          ExitCode::config,
          format_message("{}: is there already, and no {} beside it says that `fourfold data "
                         "prepare` made it; choose another --output, or move it away",
                         output.string(), outputs[0].string()));
    }
  }
}

/// One that stays would lie beside newer ones, or the older set be lost for it.
void require_replaceable(const std::string& prefix) {
  for (const char* suffix : {".json", ".bin", ".idx"}) {
    const std::filesystem::path output = prefix + suffix;
    if (const auto why = io::why_not_replaceable(output)) {
      throw UserError(ExitCode::cannot_write,
                      format_message("{}: {}, or choose another --output", output.string(), *why));
    }
  }
}

/// One output under way: its token files and its record.
class Part {
 public:
  Part(const std::filesystem::path& prefix, std::int32_t vocab_size)
      : prefix_(prefix.string()),
        tokens_(prefix, io::megatron_type(vocab_size)),
        record_(prefix_ + ".json") {}

  void add(std::span<const std::int32_t> ids) { tokens_.add_document(ids); }
  PreparedPart facts() const { return {prefix_ + ".bin", tokens_.tokens(), tokens_.documents()}; }

  void require_not_empty(const char* remedy) const {
    if (tokens_.tokens() == 0) {
      throw UserError(
          ExitCode::config,
          format_message("{}.bin would be empty (no document falls into it); {}", prefix_, remedy));
    }
  }

  /// Brings all of it to the disk: what comes after needs no room.
  void finish(TokenRecord record) {
    tokens_.finish();
    record.tokens = tokens_.tokens();
    record.documents = tokens_.documents();
    record.tokens_digest = tokens_.tokens_digest();
    record.index_digest = tokens_.index_digest();
    record_.write(to_json(record));
    record_.sync();
  }
  void withdraw_older() const { tokens_.withdraw_older(); }
  /// The record first: by it the next preparation knows the files for its own.
  void publish_all_but_index() {
    record_.publish();
    tokens_.publish_tokens();
  }
  void publish_index() { tokens_.publish_index(); }

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
                      format_message("the tokenizer has no end-of-text token ({}); leave "
                                     "--append-eot out or use another tokenizer",
                                     tokenizer.description()));
    }
    require_name_for_record(tokenizer);
    if (const auto name = options.output_prefix.filename();
        name.empty() || name == "." || name == "..") {
      throw UserError(
          ExitCode::config,
          format_message(
              "--output {}: is a folder, and its files would have no name; add one, as in {}",
              options.output_prefix.string(), (options.output_prefix / "tokens").string()));
    }
    open_inputs();
    const std::vector<std::string> prefixes = prefixes_of(options);
    {
      // As in publish().
      const FileDescriptor lock = io::lock_folder(options.output_prefix.parent_path());
      for (const std::string& prefix : prefixes) {
        refuse_to_replace_others(prefix, options);
        require_replaceable(prefix);
      }
    }
    if (const auto folder = options.output_prefix.parent_path(); !folder.empty()) {
      folder_.emplace(folder);
    }
    for (const std::string& prefix : prefixes) {
      if (!io::is_own_file(prefix + ".json", own_token_record)) {
        new_prefixes_.push_back(prefix);
      }
      parts_.emplace_back(prefix, tokenizer.vocab_size());
    }
  }

  std::vector<PreparedPart> run() {
    for (const io::MappedFile& file : files_) {
      prepare_file(file);
    }
    tell_of_text();
    parts_.front().require_not_empty("name inputs with text in them");
    parts_.back().require_not_empty(
        "raise --validation-fraction, or prepare more: another file, or lines where the text has "
        "none");
    return publish();
  }

 private:
  /// One of thousands of files may be empty: that is no reason to prepare none.
  void open_inputs() {
    for (const std::filesystem::path& input : options_.inputs) {
      io::MappedFile file(input);
      if (file.bytes().empty()) {
        log::info(format_message("{}: is empty, and left out", input.string()));
        continue;
      }
      file.advise(io::MappedFile::Access::sequential);
      progress_.total_bytes += std::ssize(file.bytes());
      files_.push_back(std::move(file));
    }
    if (files_.empty()) {
      throw UserError(
          ExitCode::data_corrupt,
          format_message("{}{} empty (there is no text to prepare); name files with text",
                         options_.inputs.front().string(),
                         options_.inputs.size() > 1 ? " and all other inputs are" : ": is"));
    }
  }

  /// What is in the text, and nobody would see in the counts.
  void tell_of_text() const {
    if (!is_separated_) {
      log::warning(format_message(
          "--document-separator \"{}\" stands nowhere in the text: each file is one document",
          *options_.document_separator));
    }
    if (lost_places_ > 0) {
      log::warning(
          format_message("{} places of the text have no token in this vocabulary: they became its "
                         "unknown token, or were left out, and no model learns them ({})",
                         lost_places_, tokenizer_.description()));
    }
    if (odd_bytes_ > 0 && is_of_bytes()) {
      log::info(format_message("{} bytes of the text are not UTF-8; `byte` takes them as they are",
                               odd_bytes_));
    } else if (odd_bytes_ > 0) {
      log::warning(
          format_message("{} bytes of the text are not UTF-8, and no text to this tokenizer ({}); "
                         "if they were meant to be read, make UTF-8 of the inputs, with iconv",
                         odd_bytes_, tokenizer_.description()));
    }
  }

  bool is_of_bytes() const { return tokenizer_.files().kind == TokenizerKind::bytes; }

  /// All parts become readable by their indexes, and these go first and come last: at no moment
  /// is there an older file beside a new one that a reader would take.
  std::vector<PreparedPart> publish() {
    for (Part& part : parts_) {
      part.finish(record());
    }
    // Another preparation of the same name may be as far: one's index must not come beside the
    // other's tokens.
    const FileDescriptor lock = io::lock_folder(options_.output_prefix.parent_path());
    for (const std::string& prefix : new_prefixes_) {  // what has come there in the meantime
      refuse_to_replace_others(prefix, options_);
    }
    for (const std::string& prefix : prefixes_of(options_)) {
      require_replaceable(prefix);
    }
    const HeldSignals until_all_have_their_names;
    for (const Part& part : parts_) {
      part.withdraw_older();
    }
    for (Part& part : parts_) {
      part.publish_all_but_index();
    }
    if (folder_) {
      folder_->keep();
    }
    std::vector<PreparedPart> written;
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {  // validation, then training
      part->publish_index();
      written.insert(written.begin(), part->facts());
    }
    return written;
  }

  void prepare_file(const io::MappedFile& file) {
    const std::string_view text = file.text();
    const auto bytes = static_cast<double>(text.size());
    const auto held_back_bytes = static_cast<std::size_t>(options_.validation_fraction * bytes);
    const std::size_t validation_begin = text.size() - held_back_bytes;
    const std::int64_t before = progress_.done_bytes;
    const auto visit = [&](std::string_view document, std::size_t begin_byte,
                           std::size_t end_byte) {
      add_document(document, begin_byte, text.size(), validation_begin);
      progress_.done_bytes = before + end_byte;
      report_(progress_);
    };
    const InputFormat format = detail::format_of(file.path(), text, options_);
    if (format == InputFormat::text && options_.format != InputFormat::text && !is_of_bytes()) {
      detail::refuse_other_encoding(file.path(), text);
    }
    if (format == InputFormat::json_lines) {
      detail::for_each_json_line(file.path(), text, visit);
      is_separated_ = true;
    } else {
      detail::for_each_document(text, options_.document_separator, visit);
      is_separated_ = is_separated_ || !options_.document_separator ||
                      text.find(*options_.document_separator) != std::string_view::npos;
    }
    progress_.done_bytes = before + std::ssize(text);
  }

  /// Puts a document where it belongs: training, validation, or one piece into each when it is a
  /// whole file.
  void add_document(std::string_view document, std::size_t begin_byte, std::size_t file_bytes,
                    std::size_t validation_begin) {
    if (begin_byte >= validation_begin) {
      add_text(parts_.back(), document);
      return;
    }
    const bool is_whole_file = document.size() == file_bytes;
    if (!is_whole_file || validation_begin == file_bytes) {
      add_text(parts_.front(), document);
      return;
    }
    const std::size_t cut =
        std::min(document.find('\n', validation_begin), document.size() - 1) + 1;
    add_text(parts_.front(), document.substr(0, cut));
    add_text(parts_.back(), document.substr(cut));
  }

  void add_text(Part& part, std::string_view text) {
    if (text.empty()) {
      return;
    }
    ids_.clear();
    tokenizer_.encode(text, ids_);
    lost_places_ += tokenizer_.lost_places(ids_);
    odd_bytes_ += detail::invalid_utf8_bytes(text);
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
    record.tokenizer = tokenizer_.files().name();
    record.tokenizer_identity = tokenizer_.identity();
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
  std::optional<io::MadeFolders> folder_;  ///< goes after the parts, when nothing comes of them
  std::deque<Part> parts_;  ///< training and validation, or one for all; a part cannot move
  PrepareProgress progress_;
  std::vector<std::int32_t> ids_;
  std::vector<std::string> new_prefixes_;  ///< where nothing of ours was at the beginning
  std::int64_t lost_places_ = 0;
  bool is_separated_ = false;
  std::int64_t odd_bytes_ = 0;  ///< not UTF-8
};

}  // namespace

namespace detail {

void for_each_document(std::string_view text, const std::optional<std::string>& separator,
                       const VisitDocument& visit) {
  if (!separator) {
    visit(text, 0, text.size());
    return;
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(*separator, begin), text.size());
    const std::size_t next = std::min(end + separator->size(), text.size());
    visit(text.substr(begin, end - begin), begin, next);
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
  if (const auto record = token_record_of(file)) {
    verify_digests(file, *record);
  }
  std::vector<std::int32_t> chunk(1 << 16);
  for (std::int64_t first = 0; first < file.tokens(); first += std::ssize(chunk)) {
    const std::size_t count = std::min<std::int64_t>(std::ssize(chunk), file.tokens() - first);
    file.read(first, std::span(chunk).first(count), vocab_size);
  }
}

}  // namespace fourfold::data

// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

namespace fourfold::runfile {
namespace {

using enum OnResume;

RunField member(auto path) {
  return field(&RunConfig::data, path);
}

}  // namespace

std::vector<RunKey> data_keys() {
  return {
      {.name = "train",
       .field = member(&DataConfig::train),
       .path_after = "",
       .meaning = "Token files to train on: paths, prefixes of .bin/.idx pairs, or globs (sorted "
                  "by name).",
       .on_resume = needs_allowance},
      {.name = "validation",
       .field = member(&DataConfig::validation),
       .path_after = "",
       .meaning = "Held-back token files for evaluation; empty: no evaluation."},
      {.name = "tokenizer",
       .field = member(&DataConfig::tokenizer),
       .path_after = "",
       .meaning = "Tokenizer that made the token files: \"byte\" or the path of its file. "
                  "Generated text is decoded with it. If you leave it out, it is the one that the "
                  "record beside the files names (another one is refused), or none where "
                  "there is no record."},
      {.name = "allow_mixed_tokenizers",
       .field = member(&DataConfig::allow_mixed_tokenizers),
       .meaning = "Accept token files whose records name different tokenizers, or another one than "
                  "tokenizer."},
  };
}

}  // namespace fourfold::runfile

// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fourfold::interchange {

/// Whether a SentencePiece model is of the type BPE, by trainer_spec.model_type of its ModelProto
/// (sentencepiece_model.proto: 1 unigram, which is the default, 2 BPE, 3 word, 4 char). The library
/// itself does not tell. Text that is no protocol buffer is of none.
bool is_sentencepiece_bpe(std::string_view model);

}  // namespace fourfold::interchange

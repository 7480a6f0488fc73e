// What the words for causes mean, in a sentence with a way out.
#pragma once

#include <string>

namespace ts::cli {

// `word` as the master spells a cause; the word itself where nothing more is to be said.
std::string explainCause(const std::string& word);

}  // namespace ts::cli

// Completion scripts for shells, made from the command line's own definition.
#pragma once

#include <string>

namespace ts::cli {

std::string completionFor(const std::string& shell);  // bash, zsh or fish

}  // namespace ts::cli

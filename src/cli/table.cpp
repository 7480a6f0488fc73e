#include "cli/table.h"

#include <algorithm>

namespace ts::cli {

std::size_t widthOf(const std::string& utf8) {
  return std::size_t(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

Table::Table(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    right_.push_back(heading.starts_with('>'));
    if (right_.back()) heading.erase(0, 1);
  }
  rows_.push_back(std::move(headings));
}

void Table::row(std::vector<std::string> cells) {
  cells.resize(right_.size());
  for (std::string& cell : cells) std::ranges::replace(cell, '\n', '?');  // a row is one line
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(right_.size());
  for (std::size_t r = 1; r < rows_.size(); ++r) {
    for (std::size_t c = 0; c < widths.size(); ++c) {
      widths[c] = std::max(widths[c], widthOf(rows_[r][c]));
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] == 0) continue;
      std::size_t width = std::max(widths[c], widthOf(rows_[0][c]));
      std::string pad(width - widthOf(row[c]), ' ');
      if (!line.empty()) line += "  ";
      line += right_[c] ? pad + row[c] : row[c] + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace ts::cli

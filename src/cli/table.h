// Aligned columns for people.
#pragma once

#include <string>
#include <vector>

namespace ts::cli {

// A heading that begins with '>' makes its column right-aligned.
class Table {
public:
  explicit Table(std::vector<std::string> headings);
  void row(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  // Lines with '\n'; no trailing blanks. Columns without any content are left out.
  std::string text() const;

private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // the first is the heading
};

// Characters on the screen, not bytes.
std::size_t widthOf(const std::string& utf8);

}  // namespace ts::cli

// Texts as one tar file, as every tar reads it.
#pragma once

#include <string>
#include <string_view>

namespace ts::cli {

class Archive {
public:
  // `name`: up to 99 bytes, a path inside the archive.
  void add(std::string_view name, std::string_view content);
  std::string finish();  // once

private:
  std::string bytes_;
};

}  // namespace ts::cli

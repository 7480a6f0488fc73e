// Texts as one tar file, as every tar reads it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct archive;

namespace ts::cli {

// Whatever libarchive refuses is an exception with its reason.
class TarFile {
public:
  TarFile();
  ~TarFile();
  TarFile(const TarFile&) = delete;
  TarFile& operator=(const TarFile&) = delete;

  // `name`: a path inside the archive, however long.
  void add(const std::string& name, std::string_view content);
  std::string finish();  // once

private:
  void require(int result, const std::string& what);

  std::string bytes_;  // outlives the writer, which writes an end when it goes
  std::unique_ptr<::archive, int (*)(::archive*)> writer_;
};

}  // namespace ts::cli

#include "cli/tar_file.h"

#include <archive.h>
#include <archive_entry.h>

#include <catch2/catch.hpp>
#include <map>

using ts::cli::TarFile;

namespace {

// What any reader finds in it.
std::map<std::string, std::string> unpacked(const std::string& bytes) {
  std::map<std::string, std::string> files;
  std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), archive_read_free);
  archive_read_support_format_tar(reader.get());
  REQUIRE(archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) == ARCHIVE_OK);
  archive_entry* entry = nullptr;
  while (archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK) {
    CHECK((archive_entry_mode(entry) & 0777) == 0600);
    std::string content(std::size_t(archive_entry_size(entry)), '\0');
    archive_read_data(reader.get(), content.data(), content.size());
    files[archive_entry_pathname(entry)] = content;
  }
  return files;
}

}  // namespace

TEST_CASE("what is put into an archive comes out of it", "[cli]") {
  TarFile tar;
  tar.add("report/empty.txt", "");
  tar.add("report/long.txt", std::string(100'000, 'x'));
  CHECK(unpacked(tar.finish()) ==
        std::map<std::string, std::string>{{"report/empty.txt", ""},
                                           {"report/long.txt", std::string(100'000, 'x')}});
}

TEST_CASE("a name longer than a tar header has room for is kept whole", "[cli]") {
  const std::string file = std::string(150, 'n') + ".txt";
  const std::string path = std::string(120, 'd') + "/" + std::string(300, 'n') + "/" + file;
  TarFile tar;
  tar.add(file, "a");
  tar.add(path, "b");
  CHECK(unpacked(tar.finish()) == std::map<std::string, std::string>{{file, "a"}, {path, "b"}});
}

TEST_CASE("an archive that is given up half written is let go", "[cli]") {
  TarFile tar;
  tar.add("report/begun.txt", "a");
}

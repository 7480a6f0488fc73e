#include "cli/tar_file.h"

#include <archive.h>
#include <archive_entry.h>

#include <ctime>
#include <stdexcept>
#include <utility>

namespace ts::cli {
namespace {

la_ssize_t append(::archive*, void* to, const void* bytes, std::size_t size) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
  return la_ssize_t(size);
}

}  // namespace

TarFile::TarFile() : writer_(archive_write_new(), archive_write_free) {
  // Plain ustar; a name that has no room in that gets a header of its own.
  require(archive_write_set_format_pax_restricted(writer_.get()), "a new one");
  require(archive_write_open(writer_.get(), &bytes_, nullptr, append, nullptr), "a new one");
}

TarFile::~TarFile() = default;

void TarFile::add(const std::string& name, std::string_view content) {
  std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                 archive_entry_free);
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_size(entry.get(), la_int64_t(content.size()));
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0600);
  archive_entry_set_mtime(entry.get(), std::time(nullptr), 0);
  require(archive_write_header(writer_.get(), entry.get()), name);
  auto written = archive_write_data(writer_.get(), content.data(), content.size());
  require(written == la_ssize_t(content.size()) ? ARCHIVE_OK : ARCHIVE_FATAL, name);
}

std::string TarFile::finish() {
  require(archive_write_close(writer_.get()), "its end");
  return std::move(bytes_);
}

void TarFile::require(int result, const std::string& what) {
  if (result == ARCHIVE_OK || result == ARCHIVE_WARN) return;  // it is written all the same
  const char* why = archive_error_string(writer_.get());
  throw std::runtime_error("cannot write " + what +
                           " into an archive: " + (why ? why : "no memory"));
}

}  // namespace ts::cli

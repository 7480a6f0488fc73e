#include "cli/archive.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <utility>

namespace ts::cli {
namespace {

constexpr std::size_t kBlock = 512;

// The fields of a ustar header, by their places.
using Header = std::array<char, kBlock>;

void put(Header& header, std::size_t at, std::string_view value) {
  value.copy(header.data() + at, value.size());
}

void putOctal(Header& header, std::size_t at, int width, unsigned long value) {
  std::array<char, 16> digits{};
  std::snprintf(digits.data(), digits.size(), "%0*lo", width, value);
  put(header, at, digits.data());
}

Header headerOf(std::string_view name, std::size_t size) {
  Header header{};
  put(header, 0, name.substr(0, 99));
  putOctal(header, 100, 7, 0600);  // mode
  putOctal(header, 108, 7, 0);     // uid
  putOctal(header, 116, 7, 0);     // gid
  putOctal(header, 124, 11, size);
  putOctal(header, 136, 11, static_cast<unsigned long>(std::time(nullptr)));
  put(header, 148, "        ");  // the sum counts itself as blanks
  put(header, 156, "0");         // a file
  put(header, 257, "ustar");
  put(header, 263, "00");
  auto sum = std::accumulate(header.begin(), header.end(), 0UL, [](unsigned long s, char c) {
    return s + static_cast<unsigned char>(c);
  });
  putOctal(header, 148, 6, sum);
  header[154] = '\0';
  return header;
}

}  // namespace

void Archive::add(std::string_view name, std::string_view content) {
  Header header = headerOf(name, content.size());
  bytes_.append(header.data(), header.size());
  bytes_.append(content);
  bytes_.resize((bytes_.size() + kBlock - 1) / kBlock * kBlock);
}

std::string Archive::finish() {
  bytes_.append(2 * kBlock, '\0');
  return std::move(bytes_);
}

}  // namespace ts::cli

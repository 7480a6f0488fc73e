// The versions of the local protocol that this daemon speaks with libraries.
#pragma once

#include <string>

#include "local/protocol.h"
#include "wire/version.h"

namespace ts::node {

// A library says in its hello which it speaks, whatever that message's own header says; all others
// bear one that both speak.
inline constexpr VersionRange kLocalVersions{1, TSL_VERSION};

// For a library that has none of these.
inline std::string versionsDiffer(VersionRange library) {
  return "the library speaks versions " + describe(library) +
         " of the local protocol, this node daemon " + describe(kLocalVersions) +
         "; they are more than a release apart: upgrade the older one";
}

}  // namespace ts::node

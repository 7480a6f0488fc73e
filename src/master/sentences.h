// Sentences of the core as a person reads them: names in place of the core's numbers.
#pragma once

#include <string>

#include "master/directory.h"

namespace ts {

// `a call on member #17` becomes `a call on process 4711 of node n1` (see core/mention.h). What has
// no name any more, for its job has ended, is told without one.
std::string withNames(Directory& directory, const std::string& sentence);

}  // namespace ts

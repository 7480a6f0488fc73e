#include "backend/snapshot_backend.h"

namespace ts {

const char* toText(TargetState state) {
  switch (state) {
    case TargetState::NoContext:
      return "without device state";
    case TargetState::Running:
      return "running";
    case TargetState::Locked:
      return "locked";
    case TargetState::Saved:
      return "saved";
    case TargetState::Failed:
      return "failed";
    case TargetState::Gone:
      return "gone";
    case TargetState::Unknown:
      break;
  }
  return "in an unknown state";
}

}  // namespace ts

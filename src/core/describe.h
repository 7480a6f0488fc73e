// The words of the core as text: one spelling for logs, scripts, metrics and tables.
#pragma once

#include <string>

#include "action.h"
#include "event.h"
#include "facts.h"
#include "view.h"

namespace ts {

const char* text(Residency);
const char* text(Cause);
const char* text(FaultKind);
const char* text(Outcome::Code);
const char* text(Notice::Kind);
const char* text(JobPhase);

std::string text(Epoch);
std::string text(const Devices&, const Names&);  // `n0:0,1 n1:0`

}  // namespace ts

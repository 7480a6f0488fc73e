#include "metrics/dashboard.h"

namespace ts {

std::string_view dashboardPage() {
  // The page is one raw string literal, so that it can be read and edited as the HTML it is.
  static constexpr std::string_view kPage =
#include "metrics/dashboard.html"
      ;
  return kPage;
}

}  // namespace ts

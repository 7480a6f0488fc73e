#include "image.h"

namespace demo {

Image kernelImage() {
  return {"// Built without nvcc: only simgpu knows these kernels.\n", ""};
}

}  // namespace demo

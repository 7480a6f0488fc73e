// The kernels as built by nvcc for a real GPU, or a note for simgpu, which brings its own.
#pragma once

namespace demo {

struct Image {
  const void* data;
  const char* toolkit;  // "13.0"; "": built without nvcc
};
Image kernelImage();

}  // namespace demo

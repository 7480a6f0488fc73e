/* A stand-in for libcuda.so.1: one entry point. */
int cuInit(unsigned flags);
int cuInit(unsigned flags) {
  return flags == 0 ? 0 : 1; /* CUDA_ERROR_INVALID_VALUE */
}

/* A plain driver-API program in C, linked against libcuda.so.1 as any other: every group of calls
 * once, each result checked. Exit code 0 when all is as on a card. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;
typedef struct {
  int type;
  int id;
} CUmemLocation;
typedef struct {
  int type, requestedHandleTypes;
  CUmemLocation location;
  void* unused;
  unsigned char flags[8];
} CUmemAllocationProp;
typedef struct {
  CUmemLocation location;
  int flags;
} CUmemAccessDesc;

int cuInit(unsigned);
int cuDriverGetVersion(int*);
int cuDeviceGetCount(int*);
int cuDeviceTotalMem_v2(size_t*, int);
int cuDeviceGetAttribute(int*, int, int);
int cuCtxCreate_v2(CUcontext*, unsigned, int);
int cuCtxDestroy_v2(CUcontext);
int cuCtxGetCurrent(CUcontext*);
int cuCtxPopCurrent_v2(CUcontext*);
int cuCtxPushCurrent_v2(CUcontext);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(CUdeviceptr*, size_t);
int cuMemFree_v2(CUdeviceptr);
int cuMemAllocAsync(CUdeviceptr*, size_t, CUstream);
int cuMemFreeAsync(CUdeviceptr, CUstream);
int cuMemGetInfo_v2(size_t*, size_t*);
int cuMemHostAlloc(void**, size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemHostRegister_v2(void*, size_t, unsigned);
int cuMemHostUnregister(void*);
int cuMemHostGetDevicePointer_v2(CUdeviceptr*, void*, unsigned);
int cuMemcpyHtoD_v2(CUdeviceptr, const void*, size_t);
int cuMemcpyDtoH_v2(void*, CUdeviceptr, size_t);
int cuMemcpyDtoD_v2(CUdeviceptr, CUdeviceptr, size_t);
int cuMemcpy(CUdeviceptr, CUdeviceptr, size_t);
int cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, size_t, CUstream);
int cuMemcpyDtoHAsync_v2(void*, CUdeviceptr, size_t, CUstream);
int cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
int cuMemsetD16_v2(CUdeviceptr, unsigned short, size_t);
int cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
int cuStreamCreate(CUstream*, unsigned);
int cuStreamDestroy_v2(CUstream);
int cuStreamSynchronize(CUstream);
int cuStreamQuery(CUstream);
int cuStreamWaitEvent(CUstream, CUevent, unsigned);
int cuEventCreate(CUevent*, unsigned);
int cuEventDestroy_v2(CUevent);
int cuEventRecord(CUevent, CUstream);
int cuEventSynchronize(CUevent);
int cuEventElapsedTime(float*, CUevent, CUevent);
int cuModuleLoadData(CUmodule*, const void*);
int cuModuleUnload(CUmodule);
int cuModuleGetFunction(CUfunction*, CUmodule, const char*);
int cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   CUstream, void**, void**);
int cuMemGetAllocationGranularity(size_t*, const CUmemAllocationProp*, int);
int cuMemAddressReserve(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long);
int cuMemAddressFree(CUdeviceptr, size_t);
int cuMemCreate(unsigned long long*, size_t, const CUmemAllocationProp*, unsigned long long);
int cuMemRelease(unsigned long long);
int cuMemMap(CUdeviceptr, size_t, size_t, unsigned long long, unsigned long long);
int cuMemUnmap(CUdeviceptr, size_t);
int cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t);
int cuPointerGetAttribute(void*, int, CUdeviceptr);
int cuGetErrorName(int, const char**);
int cuGetProcAddress_v2(const char*, void**, int, unsigned long long, int*);
int cuIpcGetMemHandle(void*, CUdeviceptr);

#define EXPECT(condition)                                                       \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)
#define OK(call) EXPECT((call) == 0)

enum { kCount = 1 << 18, kBytes = kCount * 4 };

static CUmodule module;

static CUfunction function(const char* name) {
  CUfunction f = NULL;
  OK(cuModuleGetFunction(&f, module, name));
  return f;
}

static void launch(const char* name, CUstream stream, void** params) {
  OK(cuLaunchKernel(function(name), 4, 1, 1, 64, 1, 1, 0, stream, params, NULL));
}

static void contexts(void) {
  CUcontext made = NULL, now = NULL, popped = NULL;
  OK(cuCtxCreate_v2(&made, 0, 0));
  OK(cuCtxGetCurrent(&now));
  EXPECT(now == made);
  OK(cuCtxPopCurrent_v2(&popped));
  OK(cuCtxGetCurrent(&now));
  EXPECT(popped == made && now == NULL);
  CUdeviceptr at = 0;
  EXPECT(cuMemAlloc_v2(&at, 1) == 201);
  OK(cuCtxPushCurrent_v2(made));
  OK(cuModuleLoadData(&module, "an image"));
}

static void copies(void) {
  uint32_t* host = NULL;
  CUdeviceptr a = 0, b = 0;
  OK(cuMemHostAlloc((void**)&host, kBytes, 0));
  OK(cuMemAlloc_v2(&a, kBytes));
  OK(cuMemAlloc_v2(&b, kBytes));
  for (uint32_t i = 0; i < kCount; ++i) host[i] = i * 2654435761u;
  OK(cuMemcpyHtoD_v2(a, host, kBytes));
  OK(cuMemcpyDtoD_v2(b, a, kBytes));
  memset(host, 0, kBytes);
  OK(cuMemcpyDtoH_v2(host, b, kBytes));
  for (uint32_t i = 0; i < kCount; ++i) EXPECT(host[i] == i * 2654435761u);
  OK(cuMemsetD8_v2(a, 0x5a, kBytes));
  OK(cuMemsetD16_v2(a, 0x1234, 2));
  OK(cuMemsetD32_v2(a + 4, 77, 1));
  OK(cuMemcpy((CUdeviceptr)(uintptr_t)host, a, 12));
  EXPECT(host[0] == 0x12341234 && host[1] == 77 && host[2] == 0x5a5a5a5a);
  EXPECT(cuMemcpyHtoD_v2(a + kBytes - 4, host, 1 << 20) == 1);
  EXPECT(cuMemcpyHtoD_v2(1234, host, 4) == 1);
  OK(cuMemFree_v2(a));
  EXPECT(cuMemFree_v2(a) == 1);
  OK(cuMemFree_v2(b));
  OK(cuMemFreeHost(host));
}

static void kernels(void) {
  CUdeviceptr x = 0, y = 0, out = 0;
  uint64_t count = kCount, sum = 0;
  uint32_t value = 3;
  CUfunction none = NULL;
  OK(cuMemAlloc_v2(&x, kBytes));
  OK(cuMemAlloc_v2(&y, kBytes));
  OK(cuMemAlloc_v2(&out, 8));
  void* fill[] = {&x, &value, &count};
  launch("simgpu_fill", NULL, fill);
  value = 4; /* the launch has copied its arguments */
  void* copy[] = {&y, &x, &count};
  launch("simgpu_copy", NULL, copy);
  void* add[] = {&out, &y, &count};
  launch("simgpu_sum", NULL, add);
  OK(cuMemcpyDtoH_v2(&sum, out, 8));
  EXPECT(sum == 3ull * kCount);
  EXPECT(cuModuleGetFunction(&none, module, "no_such_kernel") == 500);
  EXPECT(cuLaunchKernel(function("simgpu_sum"), 0, 1, 1, 1, 1, 1, 0, NULL, add, NULL) == 1);
  OK(cuMemFree_v2(x));
  OK(cuMemFree_v2(y));
  OK(cuMemFree_v2(out));
}

static void streams(void) {
  CUstream one = NULL, two = NULL;
  CUevent before = NULL, after = NULL;
  CUdeviceptr at = 0;
  uint64_t microseconds = 20000, count = 1;
  uint32_t value = 9, seen = 0;
  float ms = 0;
  OK(cuStreamCreate(&one, 1));
  OK(cuStreamCreate(&two, 1));
  OK(cuEventCreate(&before, 0));
  OK(cuEventCreate(&after, 0));
  OK(cuMemAllocAsync(&at, 4, one));
  OK(cuEventRecord(before, one));
  void* spin[] = {&microseconds};
  launch("simgpu_spin", one, spin);
  void* fill[] = {&at, &value, &count};
  launch("simgpu_fill", one, fill);
  OK(cuEventRecord(after, one));
  EXPECT(cuStreamQuery(one) == 600);
  OK(cuStreamWaitEvent(two, after, 0));
  OK(cuMemcpyDtoHAsync_v2(&seen, at, 4, two));
  OK(cuStreamSynchronize(two));
  EXPECT(seen == 9);
  OK(cuEventSynchronize(after));
  OK(cuEventElapsedTime(&ms, before, after));
  EXPECT(ms >= 19.5f);
  OK(cuMemFreeAsync(at, one));
  OK(cuStreamSynchronize(one));
  EXPECT(cuMemcpyDtoH_v2(&seen, at, 4) == 1);
  OK(cuEventDestroy_v2(before));
  OK(cuEventDestroy_v2(after));
  OK(cuStreamDestroy_v2(one));
  OK(cuStreamDestroy_v2(two));
  EXPECT(cuStreamSynchronize(two) == 400);
}

static void virtualMemory(void) {
  CUmemAllocationProp prop = {.type = 1, .location = {1, 0}};
  CUmemAccessDesc access = {{1, 0}, 3};
  CUdeviceptr range = 0;
  unsigned long long first = 0, second = 0;
  size_t step = 0, free0 = 0, free1 = 0, total = 0;
  uint32_t seen = 0;
  OK(cuMemGetInfo_v2(&free0, &total));
  OK(cuMemGetAllocationGranularity(&step, &prop, 0));
  OK(cuMemAddressReserve(&range, 4 * step, 0, 0, 0));
  EXPECT(cuMemCreate(&first, step + 1, &prop, 0) == 1);
  OK(cuMemCreate(&first, step, &prop, 0));
  OK(cuMemCreate(&second, 2 * step, &prop, 0));
  OK(cuMemMap(range, step, 0, first, 0));
  OK(cuMemMap(range + step, 2 * step, 0, second, 0));
  EXPECT(cuMemMap(range, step, 0, first, 0) == 1);
  EXPECT(cuMemsetD32_v2(range, 1, 1) == 1); /* no access yet */
  OK(cuMemSetAccess(range, 3 * step, &access, 1));
  OK(cuMemsetD32_v2(range, 42, 3 * step / 4));
  OK(cuMemRelease(first)); /* the mapping keeps it */
  OK(cuMemcpyDtoH_v2(&seen, range + 3 * step - 4, 4));
  EXPECT(seen == 42);
  OK(cuMemUnmap(range, step));
  OK(cuMemUnmap(range + step, 2 * step));
  OK(cuMemMap(range, 2 * step, 0, second, 0)); /* elsewhere, the same bytes */
  OK(cuMemSetAccess(range, 2 * step, &access, 1));
  OK(cuMemcpyDtoH_v2(&seen, range, 4));
  EXPECT(seen == 42);
  EXPECT(cuMemAddressFree(range, 4 * step) == 1);
  OK(cuMemUnmap(range, 2 * step));
  OK(cuMemRelease(second));
  OK(cuMemAddressFree(range, 4 * step));
  OK(cuMemGetInfo_v2(&free1, &total));
  EXPECT(free0 == free1);
}

static void hostAndPointers(void) {
  static char ours[8192];
  CUdeviceptr at = 0, device = 0;
  unsigned kind = 0;
  OK(cuMemHostRegister_v2(ours, sizeof ours, 0));
  EXPECT(cuMemHostRegister_v2(ours, 1, 0) == 712);
  OK(cuMemHostGetDevicePointer_v2(&device, ours, 0));
  OK(cuMemHostUnregister(ours));
  EXPECT(cuMemHostUnregister(ours) == 713);
  OK(cuMemAlloc_v2(&at, 100));
  OK(cuPointerGetAttribute(&kind, 2, at + 50));
  EXPECT(kind == 2);
  EXPECT(cuPointerGetAttribute(&kind, 2, (CUdeviceptr)(uintptr_t)&kind) == 1);
  EXPECT(cuIpcGetMemHandle(ours, at) == 801);
  OK(cuMemFree_v2(at));
}

static void lookUps(void) {
  void* found = NULL;
  int status = -1;
  const char* name = NULL;
  OK(cuGetProcAddress_v2("cuMemAlloc", &found, 13000, 0, &status));
  EXPECT(found == (void*)(uintptr_t)&cuMemAlloc_v2 && status == 0);
  EXPECT(cuGetProcAddress_v2("cuNoSuchThing", &found, 13000, 0, &status) == 500);
  EXPECT(found == NULL && status == 1);
  OK(cuGetErrorName(401, &name));
  EXPECT(strcmp(name, "CUDA_ERROR_ILLEGAL_STATE") == 0);
  EXPECT(cuGetErrorName(12345, &name) == 1);
}

int main(void) {
  int version = 0, devices = 0, units = 0;
  CUdeviceptr at = 0;
  CUcontext current = NULL;
  EXPECT(cuMemAlloc_v2(&at, 1) == 3);
  OK(cuInit(0));
  OK(cuDriverGetVersion(&version));
  OK(cuDeviceGetCount(&devices));
  OK(cuDeviceGetAttribute(&units, 16, 0));
  EXPECT(version == 13000 && devices >= 1 && units > 0);
  contexts();
  copies();
  kernels();
  streams();
  virtualMemory();
  hostAndPointers();
  lookUps();
  OK(cuCtxSynchronize());
  OK(cuModuleUnload(module));
  OK(cuMemAlloc_v2(&at, kBytes));
  OK(cuCtxGetCurrent(&current));
  OK(cuCtxDestroy_v2(current)); /* frees what is left */
  puts("as on a card");
  return 0;
}

/* What the injected library exports: the driver calls it stands before, and what it has noticed. */
#pragma once

#define TSP_EXPORT __attribute__((visibility("default")))

/* The driver's own; passed on. CUDA_ERROR_NO_DEVICE where there is no driver. */
TSP_EXPORT int cuInit(unsigned flags);

/* 1 once this process has called cuInit() through the dynamic linker. Exported, since nothing but
 * the process itself can ask: dlsym(), or a debugger, tells whether the injection works. */
TSP_EXPORT int ts_preload_touched(void);

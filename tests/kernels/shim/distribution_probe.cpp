// The jump ahead of the worker-to-task mapping of distribution.cuh, callable from the host.
#include "cuda_shim.h"

#include "problem.cuh"
#include "distribution.cuh"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int probe_height(int worker, int rows, int* before) { return height_of_worker(worker, rows, *before); }
EXPORTED int probe_tasks_up_to(int height, int rows) { return tasks_up_to(height, rows); }

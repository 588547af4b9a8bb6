// The worker-to-task mapping of distribution.cuh, callable from the host.
#include "cuda_shim.h"

#include "problem.cuh"
#include "distribution.cuh"

#define EXPORTED extern "C" __attribute__((visibility("default")))

static Problem problem_of(int left_height, int right_height, int shift_y0, int shifts_y) {
    Problem p = {};
    p.left_height = left_height;
    p.right_height = right_height;
    p.shift_y0 = shift_y0;
    p.shifts_y = shifts_y;
    return p;
}

EXPORTED int probe_workers(int left_height, int right_height, int shift_y0, int shifts_y, int distribution, int rows,
                           int step) {
    return workers_of(problem_of(left_height, right_height, shift_y0, shifts_y), distribution, rows, step);
}

// Fills (iy, first, last) of workers 0 ... count - 1.
EXPORTED void probe_tasks(int left_height, int right_height, int shift_y0, int shifts_y, int distribution, int rows,
                           int step, int count, int* tasks) {
    const Problem p = problem_of(left_height, right_height, shift_y0, shifts_y);
    for (int worker = 0; worker < count; ++worker) {
        const Task task = task_of_worker(p, distribution, rows, worker, step);
        tasks[3 * worker] = task.iy;
        tasks[3 * worker + 1] = task.first;
        tasks[3 * worker + 2] = task.last;
    }
}

// First worker and its height after a jump ahead, for heights too large to enumerate.
EXPORTED int probe_height(int worker, int rows, int* before) { return height_of_worker(worker, rows, *before); }
EXPORTED int probe_tasks_up_to(int height, int rows) { return tasks_up_to(height, rows); }

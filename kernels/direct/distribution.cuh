// Work distribution: the overlapping rows of one dy are split into tasks of at most `rows` rows, which are assigned to
// workers.
//
//   none       one worker per dy, all its rows
//   rectangle  the largest number of tasks for every dy; surplus workers leave at once
//   triangle   exactly the sum over dy of ceil(height(dy) / rows) workers; a worker inverts that sum
//
// Overlap heights over a window rise by one a shift, stay flat, fall by one a shift (a triangle for the full plane of
// equal matrices). Heights 1 ... h hold T(h) = rows * q (q + 1) / 2 + (h - q * rows) (q + 1) tasks, q = h / rows: runs of
// `rows` heights with equal task counts. A worker finds its q by a square root in float, corrected in integers.
#pragma once

#define NONE 0
#define RECTANGLE 1
#define TRIANGLE 2

struct Task {
    int iy;           // row of the plane; -1 for a surplus worker
    int first, last;  // overlapping rows to sum, counted from the first overlapping row
};

// rows * q (q + 1) / 2 in 64 bits, where the neighbour of a worker's run may pass 2^31 although no worker does.
__device__ __forceinline__ long long tasks_in_runs(int q, int rows) { return (long long)q * (q + 1) / 2 * rows; }

__device__ __forceinline__ int tasks_up_to(int height, int rows) {
    const int q = height / rows;
    return (int)tasks_in_runs(q, rows) + (height - q * rows) * (q + 1);
}

// The smallest height h with T(h) > worker; `before` becomes T(h - 1).
__device__ __forceinline__ int height_of_worker(int worker, int rows, int& before) {
    int q = (int)((sqrtf(8.0f * (float)worker / (float)rows + 1.0f) - 1.0f) * 0.5f);
    while (tasks_in_runs(q, rows) > worker) --q;
    while (tasks_in_runs(q + 1, rows) <= worker) ++q;
    const int height = q * rows + (worker - (int)tasks_in_runs(q, rows)) / (q + 1) + 1;
    before = tasks_up_to(height - 1, rows);
    return height;
}

struct Heights {
    int rise_first, flat_first, fall_first, end;  // rows of the plane where each part begins; `end` closes the fall
    int rise_height, flat_height;                 // overlap height at rise_first, and of the flat part
};

__device__ __forceinline__ int overlap_height(const Problem& p, int iy) {
    Span span = overlap(p.left_height, p.right_height, p.shift_y0 + iy);
    return most(0, span.last - span.first);
}

__device__ __forceinline__ Heights heights_of(const Problem& p) {
    int flat = least(p.left_height, p.right_height);
    // Shifts with any overlap: 1 - right_height ... left_height - 1; flat from least(0, difference) to most(0, difference).
    int difference = p.left_height - p.right_height;
    Heights h;
    h.rise_first = least(p.shifts_y, most(0, 1 - p.right_height - p.shift_y0));
    h.flat_first = least(p.shifts_y, most(h.rise_first, least(0, difference) - p.shift_y0));
    h.fall_first = least(p.shifts_y, most(h.flat_first, most(0, difference) + 1 - p.shift_y0));
    h.end = most(h.fall_first, least(p.shifts_y, p.left_height - p.shift_y0));
    h.rise_height = overlap_height(p, h.rise_first);
    h.flat_height = flat;
    return h;
}

// Number of workers; the launcher computes the same on the host.
__device__ __forceinline__ int workers_of(const Problem& p, int distribution, int rows) {
    Heights h = heights_of(p);
    if (distribution == NONE) return p.shifts_y;
    if (distribution == RECTANGLE) return p.shifts_y * ceil_div(h.flat_height, rows);
    int rising = 0, falling = 0;
    if (h.flat_first > h.rise_first)
        rising = tasks_up_to(h.rise_height + (h.flat_first - h.rise_first) - 1, rows) - tasks_up_to(h.rise_height - 1, rows);
    if (h.end > h.fall_first) {
        int lowest = overlap_height(p, h.end - 1);
        falling = tasks_up_to(lowest + (h.end - h.fall_first) - 1, rows) - tasks_up_to(lowest - 1, rows);
    }
    return rising + (h.fall_first - h.flat_first) * ceil_div(h.flat_height, rows) + falling;
}

__device__ __forceinline__ Task cut(int iy, int task, int height, int rows) {
    // (task + 1) * rows may pass 2^31 where the rows of a task were asked to be huge.
    Task result = {iy, task * rows, height - task * rows <= rows ? height : (task + 1) * rows};
    return result;
}

__device__ __forceinline__ Task task_of_worker(const Problem& p, int distribution, int rows, int worker) {
    Task surplus = {-1, 0, 0};
    if (distribution == NONE) {
        if (worker >= p.shifts_y) return surplus;
        const int iy = worker;
        Task all = {iy, 0, overlap_height(p, iy)};
        return all;
    }
    if (distribution == RECTANGLE) {
        int most_tasks = ceil_div(least(p.left_height, p.right_height), rows);
        int iy = worker / most_tasks, task = worker % most_tasks;
        if (iy >= p.shifts_y) return surplus;
        int height = overlap_height(p, iy);
        if (task * rows >= height) return surplus;
        return cut(iy, task, height, rows);
    }
    Heights h = heights_of(p);
    int before;
    if (h.flat_first > h.rise_first) {
        int skipped = tasks_up_to(h.rise_height - 1, rows);
        int rising = tasks_up_to(h.rise_height + (h.flat_first - h.rise_first) - 1, rows) - skipped;
        if (worker < rising) {
            int height = height_of_worker(worker + skipped, rows, before);
            return cut(h.rise_first + height - h.rise_height, worker + skipped - before, height, rows);
        }
        worker -= rising;
    }
    int flat_tasks = ceil_div(h.flat_height, rows);
    int flat = (h.fall_first - h.flat_first) * flat_tasks;
    if (worker < flat) return cut(h.flat_first + worker / flat_tasks, worker % flat_tasks, h.flat_height, rows);
    worker -= flat;
    if (h.end <= h.fall_first) return surplus;
    int lowest = overlap_height(p, h.end - 1);
    int skipped = tasks_up_to(lowest - 1, rows);
    int falling = tasks_up_to(lowest + (h.end - h.fall_first) - 1, rows) - skipped;
    if (worker >= falling) return surplus;
    int mirrored = falling - 1 - worker + skipped;  // counted from the lowest height, which comes last
    int height = height_of_worker(mirrored, rows, before);
    return cut(h.end - 1 - (height - lowest), mirrored - before, height, rows);
}

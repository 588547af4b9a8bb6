// Work distribution: the overlapping rows of one dy, or of `step` neighbouring dy that a thread sums together, are split
// into tasks of at most `rows` left rows, which are assigned to workers.
//
//   none       one worker per group of dy, all its rows
//   rectangle  the largest number of tasks for every group; surplus workers leave at once
//   triangle   exactly the sum over groups of ceil(height / rows) workers; a worker inverts that sum
//
// Overlap heights over a window rise by one a shift, stay flat, fall by one a shift (a triangle for the full plane of
// equal matrices). Groups of `step` dy are the same in units of `step` rows: `rows` is rounded up to whole units, heights
// are too, and rise and fall by one unit a group. Heights 1 ... h hold T(h) = rows * q (q + 1) / 2 + (h - q * rows) (q + 1)
// tasks, q = h / rows: runs of `rows` heights with equal task counts. A worker finds its q by a square root in float,
// corrected in integers.
#pragma once

#define NONE 0
#define RECTANGLE 1
#define TRIANGLE 2

struct Task {
    int iy;           // first row of the plane; -1 for a surplus worker
    int first, last;  // overlapping left rows to sum, counted from the first overlapping one
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

// Left rows that overlap with a right row at any dy of a group.
__device__ __forceinline__ int overlap_height(const Problem& p, int group, int step) {
    const int dy = p.shift_y0 + group * step;
    return max(0, min(p.left_height, p.right_height + dy + step - 1) - max(0, dy));
}

struct Heights {
    int rise_first, flat_first, fall_first, end;  // groups where each part begins; `end` closes the fall
    int rise_height, flat_height;                 // overlap height at rise_first, and of the flat part, in units of step
};

__device__ __forceinline__ Heights heights_of(const Problem& p, int step) {
    const int groups = ceil_div(p.shifts_y, step), right_height = p.right_height + step - 1;  // as any dy of a group sees it
    // Shifts with any overlap: 1 - right_height ... left_height - 1; flat from min(0, difference) to max(0, difference).
    const int difference = p.left_height - right_height;
    const auto group_from = [&](int dy) { return min(groups, dy <= p.shift_y0 ? 0 : ceil_div(dy - p.shift_y0, step)); };
    Heights h;
    h.rise_first = group_from(1 - right_height);
    h.flat_first = max(h.rise_first, group_from(min(0, difference)));
    h.fall_first = max(h.flat_first, group_from(max(0, difference) + 1));
    h.end = max(h.fall_first, group_from(p.left_height));
    h.rise_height = ceil_div(overlap_height(p, h.rise_first, step), step);
    h.flat_height = ceil_div(min(p.left_height, right_height), step);
    return h;
}

// Number of workers; the launcher computes the same on the host.
__device__ __forceinline__ int workers_of(const Problem& p, int distribution, int rows, int step = 1) {
    if (distribution == NONE) return ceil_div(p.shifts_y, step);
    const Heights h = heights_of(p, step);
    const int units = ceil_div(rows, step);
    if (distribution == RECTANGLE) return ceil_div(p.shifts_y, step) * ceil_div(h.flat_height, units);
    int rising = 0, falling = 0;
    if (h.flat_first > h.rise_first)
        rising = tasks_up_to(h.rise_height + (h.flat_first - h.rise_first) - 1, units) - tasks_up_to(h.rise_height - 1, units);
    if (h.end > h.fall_first) {
        const int lowest = ceil_div(overlap_height(p, h.end - 1, step), step);
        falling = tasks_up_to(lowest + (h.end - h.fall_first) - 1, units) - tasks_up_to(lowest - 1, units);
    }
    return rising + (h.fall_first - h.flat_first) * ceil_div(h.flat_height, units) + falling;
}

// Task `task` of a group of this height, both in units.
__device__ __forceinline__ Task cut(const Problem& p, int group, int task, int height, int units, int step) {
    // (task + 1) * units may pass 2^31 where the rows of a task were asked to be huge.
    const bool is_last = height - task * units <= units;
    Task result = {group * step, task * units * step, is_last ? overlap_height(p, group, step) : (task + 1) * units * step};
    return result;
}

__device__ __forceinline__ Task task_of_worker(const Problem& p, int distribution, int rows, int worker, int step = 1) {
    Task surplus = {-1, 0, 0};
    const int groups = ceil_div(p.shifts_y, step), units = ceil_div(rows, step);
    if (distribution == NONE) {
        if (worker >= groups) return surplus;
        Task all = {worker * step, 0, overlap_height(p, worker, step)};
        return all;
    }
    const Heights h = heights_of(p, step);
    const int flat_tasks = ceil_div(h.flat_height, units);
    if (distribution == RECTANGLE) {
        const int group = worker / flat_tasks, task = worker % flat_tasks;
        if (group >= groups) return surplus;
        const int height = ceil_div(overlap_height(p, group, step), step);
        if (task * units >= height) return surplus;
        return cut(p, group, task, height, units, step);
    }
    int before;
    if (h.flat_first > h.rise_first) {
        const int skipped = tasks_up_to(h.rise_height - 1, units);
        const int rising = tasks_up_to(h.rise_height + (h.flat_first - h.rise_first) - 1, units) - skipped;
        if (worker < rising) {
            const int height = height_of_worker(worker + skipped, units, before);
            return cut(p, h.rise_first + height - h.rise_height, worker + skipped - before, height, units, step);
        }
        worker -= rising;
    }
    const int flat = (h.fall_first - h.flat_first) * flat_tasks;
    if (worker < flat) return cut(p, h.flat_first + worker / flat_tasks, worker % flat_tasks, h.flat_height, units, step);
    worker -= flat;
    if (h.end <= h.fall_first) return surplus;
    const int lowest = ceil_div(overlap_height(p, h.end - 1, step), step);
    const int skipped = tasks_up_to(lowest - 1, units);
    const int falling = tasks_up_to(lowest + (h.end - h.fall_first) - 1, units) - skipped;
    if (worker >= falling) return surplus;
    const int mirrored = falling - 1 - worker + skipped;  // counted from the lowest height, which comes last
    const int height = height_of_worker(mirrored, units, before);
    return cut(p, h.end - 1 - (height - lowest), mirrored - before, height, units, step);
}

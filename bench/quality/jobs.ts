// Formats side by side, each in a worker of its own: encoders run on one thread, and so does most of calibrated
// rounding, so that many processors are better used by many formats than by many threads of one.

import { measureStored, type StoredResult, type StoredTask } from "./stored.ts";

/** A task with what came of it, or why nothing did. */
export interface DoneTask {
  readonly task: StoredTask;
  readonly result: StoredResult | string;
}

/**
 * Measures tasks, so many at a time, and hands them out as they end.
 *
 * @throws {Error} What a task throws; others are given up.
 */
export async function* measureInJobs(
  tasks: readonly StoredTask[],
  jobs: number,
): AsyncGenerator<DoneTask> {
  if (jobs === 1) {
    for (const task of tasks) yield { task, result: await measureStored(task) };
    return;
  }
  const waiting = [...tasks];
  const running = new Map<StoredTask, Promise<DoneTask>>();
  const workers = new Set<Worker>();
  const start = (worker: Worker) => {
    const task = waiting.shift();
    if (!task) return;
    const result = resultOf(worker, task).then((result) => {
      start(worker);
      return { task, result };
    });
    running.set(task, result);
  };
  try {
    for (let i = 0; i < Math.min(jobs, tasks.length); i++) {
      const worker = new Worker(new URL("./stored_worker.ts", import.meta.url), { type: "module" });
      workers.add(worker);
      start(worker);
    }
    while (running.size > 0) {
      const done = await Promise.race(running.values());
      running.delete(done.task);
      yield done;
    }
  } finally {
    for (const worker of workers) worker.terminate();
  }
}

function resultOf(worker: Worker, task: StoredTask): Promise<StoredResult | string> {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { result, error } }) => {
      if (error) reject(new Error(`${task.format}: ${error.message}`, { cause: error }));
      else resolve(result);
    };
    worker.postMessage(task);
  });
}

// Which workers there are, as a front knows it: by what they say of themselves at every beat. Who has been silent for some
// beats is gone. It also remembers who computed which beginnings of prompts.

import type { EngineFigures, ServedModel } from "../engine.ts";
import type { WorkerStatus } from "./wire.ts";

/** Beats after which a silent worker is taken for dead. */
const SILENT_BEATS = 3.5;
/** Beginnings that are remembered. */
const MOST_PREFIXES = 20_000;
/** Of a worker that has not said yet. */
const SOME_BEAT_MS = 1_000;

interface Known {
  status: WorkerStatus;
  heardAt: number;
  /** Jobs that were sent its way since. */
  sent: number;
}

type ModelFigures = EngineFigures["models"][number];

/** Workers of a queue. */
export class Roster {
  readonly #workers = new Map<string, Known>();
  readonly #models = new Map<string, ServedModel>();
  /** By hash, in the order of their last use. */
  readonly #prefixes = new Map<string, string>();
  readonly #now: () => number;
  #isDeaf = false;

  /** @param now Milliseconds in which workers could be heard; a clock that only goes forward. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Notes what a worker says. */
  note(status: WorkerStatus): void {
    if (!isStatus(status)) return;
    if (status.isLeaving) this.#workers.delete(status.worker);
    else this.#workers.set(status.worker, { status, heardAt: this.#now(), sent: 0 });
    for (const model of status.models) this.#models.set(model.name, model);
  }

  /** Workers that are there. */
  alive(): WorkerStatus[] {
    const now = this.#now();
    for (const [worker, { status, heardAt }] of this.#workers) {
      if (!this.#isDeaf && now - heardAt > SILENT_BEATS * status.beatMs) {
        this.#workers.delete(worker);
      }
    }
    return [...this.#workers.values()].map(({ status }) => status);
  }

  /** Whether nobody can be heard, so that silence says nothing. */
  set isDeaf(isDeaf: boolean) {
    this.#isDeaf = isDeaf;
    for (const known of this.#workers.values()) known.heardAt = this.#now();
  }

  /** How often a worker is heard of, in milliseconds. */
  beatMs(worker: string): number {
    return this.#workers.get(worker)?.status.beatMs ?? SOME_BEAT_MS;
  }

  isAlive(worker: string): boolean {
    return this.alive().some((status) => status.worker === worker);
  }

  /** Whether a worker is there for a model. */
  serves(model: string): boolean {
    return this.alive().some(({ models }) => models.some(({ name }) => name === model));
  }

  /** Whether a model was ever served. */
  knows(model: string): boolean {
    return this.#models.has(model);
  }

  /** Models that workers serve now. */
  models(): ServedModel[] {
    const served = this.alive().flatMap(({ models }) => models);
    return [...new Map(served.map((model) => [model.name, model])).values()];
  }

  /** A worker computes prompts with these beginnings. */
  remember(worker: string, hashes: readonly string[]): void {
    for (const hash of hashes) {
      this.#prefixes.delete(hash);
      this.#prefixes.set(hash, worker);
    }
    for (const hash of this.#prefixes.keys()) {
      if (this.#prefixes.size <= MOST_PREFIXES) break;
      this.#prefixes.delete(hash);
    }
  }

  /** The worker that holds the longest of these beginnings, where it is there and has a place free; it is sent a job. */
  holder(hashes: readonly string[]): string | undefined {
    const worker = hashes.toReversed().map((hash) => this.#prefixes.get(hash)).find(Boolean);
    if (worker === undefined || !this.isAlive(worker)) return undefined;
    const known = this.#workers.get(worker)!;
    if (known.status.running + known.sent >= known.status.places) return undefined;
    known.sent++;
    return worker;
  }

  /** Figures of all workers that are there, added up by model. */
  figures(): ModelFigures[] {
    const sums = new Map<string, ModelFigures>();
    for (const { figures } of this.alive()) {
      for (const one of figures.models) {
        const sum = sums.get(one.name);
        sums.set(one.name, sum ? added(sum, one) : one);
      }
    }
    return [...sums.values()];
  }
}

/** Anybody may write to a subject. */
function isStatus(status: Partial<WorkerStatus> | null): boolean {
  const { worker, beatMs, models, figures } = status ?? {};
  return typeof worker === "string" && typeof beatMs === "number" && Array.isArray(models) &&
    Array.isArray(figures?.models);
}

function added(a: ModelFigures, b: ModelFigures): ModelFigures {
  const sums = Object.entries(a).map((
    [key, value],
  ) => [key, typeof value === "number" ? value + Number(b[key as keyof ModelFigures]) : value]);
  return Object.fromEntries(sums) as unknown as ModelFigures;
}

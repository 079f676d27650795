// A device that computes as another one does and takes as long as somebody says, by a clock that goes on when all wait: so
// what a placement gains is counted, on machines that have one device.

import type { DimEnv } from "../../engine/graph/dim/mod.ts";
import { pause } from "../../engine/pause.ts";
import type { Plan } from "../../engine/plan/plan.ts";
import type { Backend } from "../../engine/run/backend.ts";
import type { Device } from "../../engine/run/devices.ts";

/** Seconds that nobody waits for. */
export interface FakeClock {
  readonly now: number;
  /** Resolves when so many seconds have gone by. */
  sleep(seconds: number): Promise<void>;
}

/** Turns of the event loop in which whatever follows from an event has come to wait again. */
const TURNS = 6;

/** A clock that stands at 0. */
export function createFakeClock(): FakeClock {
  const events: { readonly at: number; readonly resolve: () => void }[] = [];
  let now = 0, isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    while (events.length > 0) {
      for (let turn = 0; turn < TURNS; turn++) await pause();
      events.sort((a, b) => a.at - b.at);
      const { at, resolve } = events.shift()!;
      now = at;
      resolve();
    }
    isRunning = false;
  }

  return {
    get now() {
      return now;
    },
    sleep: (seconds) =>
      new Promise((resolve) => {
        events.push({ at: now + seconds, resolve });
        if (!isRunning) void run();
      }),
  };
}

/** The device with another time. */
export function simulate(
  device: Device,
  { clock, secondsOf }: {
    readonly clock: FakeClock;
    /** How long a run of a part takes. */
    readonly secondsOf: (plan: Plan, bindings: DimEnv) => number;
  },
): Device {
  const backend: Backend = {
    ...device.backend,
    async prepare(plan, options) {
      const prepared = await device.backend.prepare(plan, options);
      return {
        ...prepared,
        runsAside: true,
        async run(bindings, wish, signal) {
          await clock.sleep(secondsOf(plan, bindings));
          await prepared.run(bindings, wish, signal);
        },
      };
    },
  };
  return { ...device, backend };
}

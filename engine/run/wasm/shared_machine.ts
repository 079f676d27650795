// One WASM machine for several executables: the segments of a graph, and plans that follow one another as
// sizes grow. Each borrows it and gives back what it allocated; workers start once, and stop when nobody
// borrows any more. Executables that keep states share where a model is cut into many (`createCommonMachines`).

import type { Machine } from "../../../wasm/machine.ts";
import { reserveOf } from "./estimate.ts";

/** What an executable takes besides weights, states, activations and scratch memory of products. */
const OWN_BYTES = 2 ** 19;

/** A machine to borrow. */
export interface SharedMachine {
  /** The machine; its `dispose` gives back what was allocated through it. */
  borrow(): Promise<Machine>;
}

/** Calls `start` at the first borrowing, and again after everything was given back. */
export function createSharedMachine(start: () => Promise<Machine>): SharedMachine {
  const current: { machine?: Promise<Machine>; borrowers: number } = { borrowers: 0 };

  return {
    async borrow() {
      current.borrowers++;
      current.machine ??= start();
      try {
        return lend(await current.machine, giveBack);
      } catch (error) {
        giveBack();
        throw error;
      }
    },
  };

  function giveBack(): void {
    if (--current.borrowers > 0) return;
    current.machine?.then((machine) => machine.dispose(), () => {});
    delete current.machine;
  }
}

/** Machines that fill up one after another. */
export function createCommonMachines(start: () => Promise<Machine>, memoryBytes: number): {
  /** A machine with room for so many bytes. */
  borrow(bytes: number): Promise<Machine>;
} {
  const room = memoryBytes - reserveOf(memoryBytes);
  let current = createSharedMachine(start), used = 0;
  return {
    borrow(bytes) {
      // Program and tables of each.
      const own = bytes + OWN_BYTES;
      if (used > 0 && used + own > room) {
        current = createSharedMachine(start);
        used = 0;
      }
      used += own;
      return current.borrow();
    },
  };
}

function lend(machine: Machine, giveBack: () => void): Machine {
  const blocks: number[] = [];
  let returned = false;
  const dispose = () => {
    if (returned) return;
    returned = true;
    // No worker may still look at a program whose memory is given back.
    machine.settle();
    for (const address of blocks) machine.release(address);
    giveBack();
  };
  // Everything else, counters that change included, is the machine's own.
  return Object.create(machine, {
    allocate: {
      value(bytes: number): number {
        const address = machine.allocate(bytes);
        blocks.push(address);
        return address;
      },
    },
    release: {
      value(address: number): void {
        const at = blocks.lastIndexOf(address);
        if (at >= 0) blocks.splice(at, 1);
        machine.release(address);
      },
    },
    dispose: { value: dispose },
    [Symbol.dispose]: { value: dispose },
  }) as Machine;
}

// One arena for several executables on WASM that run one after another: activations of all of them
// lie in the same bytes, so that nets of a pipeline take the memory of the largest instead of the sum. Its
// size is fixed when it is made, because programs hold addresses: an arena that grew would have to move, and
// every program with it. Weights, inputs and constants stay each executable's own.

import { createMachine, type Machine, type MachineOptions } from "../../../wasm/machine.ts";
import { ResourceError } from "../../errors.ts";
import { createSharedMachine } from "./shared_machine.ts";

/** Memory that executables share. */
export interface WasmArena {
  /** The machine that the arena lies in; its `dispose` gives back what was allocated through it. */
  borrow(): Promise<Machine>;
  /**
   * Address of the arena. Borrow first.
   *
   * @throws {ResourceError} If a plan needs more than the arena has.
   */
  place(graph: string, bytes: number): number;
  /** Gives the arena back; the machine stops when no executable borrows it any more. */
  dispose(): void;
}

/** Makes one of so many bytes; nothing is reserved before the first borrowing. */
export function createWasmArena(bytes: number, options: MachineOptions): WasmArena {
  const shared = createSharedMachine(() => createMachine(options));
  let own: Promise<{ readonly machine: Machine; readonly address: number }> | undefined;
  let address = 0;
  let disposed = false;
  return {
    async borrow() {
      if (disposed) throw new TypeError("Cannot use an arena that has been disposed");
      // The arena borrows too, so that it outlives the executables of any one net.
      own ??= shared.borrow().then((machine) => {
        try {
          address = machine.allocate(bytes);
        } catch (error) {
          machine.dispose();
          throw error;
        }
        return { machine, address };
      });
      const mine = own;
      try {
        await mine;
      } catch (error) {
        if (own === mine) own = undefined; // there may be memory the next time
        throw error;
      }
      return await shared.borrow();
    },
    place(graph, wanted) {
      if (wanted <= bytes) return address;
      throw new ResourceError(`needs an arena of ${wanted} bytes; the shared one has ${bytes}`, {
        place: graph,
        remedy: `Make it with createArena({ bytes: ${wanted} })`,
      });
    },
    dispose() {
      disposed = true;
      own?.then(({ machine }) => machine.dispose(), () => {});
    },
  };
}

// How much each adapter counts, by slot: wraps an executable whose graph has the inputs `adapter.0`, `adapter.1`, …
// (f32[M, 1]) and writes into them, before every step, the scales of each row's slot. Sessions and batches above set
// scales and know nothing of rows. Any other model's executable is handed through untouched.

import type { Graph } from "../graph/graph.ts";
import type { Backend, Executable } from "./backend.ts";

const INPUT = /^adapter\.\d+$/;

/** Name of the input that has the scales of an adapter. */
export function adapterInput(adapter: number): string {
  return `adapter.${adapter}`;
}

/** A backend whose executables write the scales of adapters by themselves. */
export function withAdapterScales(backend: Backend): Backend {
  return {
    name: backend.name,
    async prepare(plan, options) {
      const executable = await backend.prepare(plan, options);
      const count = adapterCount(plan.graph);
      return count === 0 ? executable : writeScales(executable, count, options.adapterScales);
    },
  };
}

function adapterCount({ inputs }: Graph): number {
  return inputs.filter(({ name }) => INPUT.test(name)).length;
}

function writeScales(
  inner: Executable,
  count: number,
  defaults: readonly number[] = Array(count).fill(1),
): Executable {
  const scales = new Map<number, readonly number[]>();
  const slots = inner.input("slots") as Int32Array;
  const inputs = Array.from(
    { length: count },
    (_, adapter) => inner.input(adapterInput(adapter)) as Float32Array,
  );
  return {
    ...inner,
    run(bindings) {
      for (let row = 0; row < bindings.M!; row++) {
        const own = scales.get(slots[row]!) ?? defaults;
        for (let adapter = 0; adapter < count; adapter++) inputs[adapter]![row] = own[adapter]!;
      }
      return inner.run(bindings);
    },
    openSlot() {
      const slot = inner.openSlot();
      scales.set(slot, defaults);
      return slot;
    },
    closeSlot(slot) {
      scales.delete(slot);
      inner.closeSlot(slot);
    },
    setAdapterScales(slot, values) {
      if (values.length !== count) {
        throw new RangeError(`Cannot set ${values.length} scales: the model has ${count} adapters`);
      }
      scales.set(slot, [...values]);
    },
  };
}

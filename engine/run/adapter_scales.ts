// How much each adapter counts, by slot: wraps an executable whose graph has the inputs `adapter.0`, `adapter.1`, …
// (f32[M, 1]) and writes into them, before every step, the scales of each row's slot. The rows of an encoder-decoder's
// source have inputs of their own, `source_adapter.0` and so on beside `source_slots`. Rows of an encoder have no slots:
// all of a step have the scales of slot 0. Sessions and batches above set scales and know nothing of rows. Any other
// model's executable is handed through untouched.

import { compile, type CompiledDim } from "../graph/dim/mod.ts";
import type { Graph } from "../graph/graph.ts";
import type { Backend, PreparedPlan } from "./backend.ts";

const INPUT = /^(.*)adapter\.\d+$/;

/** Name of the input that has the scales of an adapter; the prefix is that of all inputs of these rows. */
export function adapterInput(adapter: number, prefix = ""): string {
  return `${prefix}adapter.${adapter}`;
}

/** A backend whose executables write the scales of adapters by themselves. */
export function withAdapterScales(backend: Backend): Backend {
  return {
    ...backend,
    async prepare(plan, options) {
      const executable = await backend.prepare(plan, options);
      const tables = tablesOf(plan.graph, executable);
      return tables.length === 0 ? executable : writeScales(executable, tables, options);
    },
  };
}

/** Rows of a step that have scales. */
interface Table {
  readonly rows: CompiledDim;
  /** Absent: all rows belong to slot 0. */
  readonly slots: Int32Array | undefined;
  /** By adapter, a scale for each row. */
  readonly scales: readonly Float32Array[];
}

function tablesOf({ inputs }: Graph, executable: PreparedPlan): Table[] {
  const prefixes = new Set(inputs.flatMap(({ name }) => INPUT.exec(name)?.[1] ?? []));
  return [...prefixes].map((prefix) => {
    const scales = inputs.filter(({ name }) => INPUT.exec(name)?.[1] === prefix);
    return {
      rows: compile(scales[0]!.shape[0]!),
      slots: inputs.some(({ name }) => name === `${prefix}slots`)
        ? executable.input(`${prefix}slots`) as Int32Array
        : undefined,
      scales: scales.map((_, adapter) =>
        executable.input(adapterInput(adapter, prefix)) as Float32Array
      ),
    };
  });
}

function writeScales(
  inner: PreparedPlan,
  tables: readonly Table[],
  { adapterScales }: { readonly adapterScales?: readonly number[] },
): PreparedPlan {
  const count = tables[0]!.scales.length;
  const defaults = adapterScales ?? Array<number>(count).fill(1);
  const scales = new Map<number, readonly number[]>();
  return {
    ...inner,
    run(bindings) {
      for (const table of tables) {
        const rows = table.rows(bindings);
        for (let row = 0; row < rows; row++) {
          const own = scales.get(table.slots ? table.slots[row]! : 0) ?? defaults;
          for (let adapter = 0; adapter < count; adapter++) {
            table.scales[adapter]![row] = own[adapter]!;
          }
        }
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

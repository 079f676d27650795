// Graphs with dims of 0 against onnxruntime (tools/fixtures/make_empty_ops.py), sizes known to the graph and sizes
// that a run brings: nothing is no reason to refuse or to fail.

import { assertEquals, assertGreater } from "@std/assert";
import { type GraphTensor, loadGraph } from "../mod.ts";
import type { DeviceName } from "../engine/run/backend.ts";
import { fixturePath } from "./support/fixtures.ts";
import { adapterNeed } from "./support/gpu.ts";
import { differingElement, type StoredTensor, tensorOf } from "./support/stored_tensors.ts";
import { testWith } from "./support/skip.ts";

interface Case {
  readonly name: string;
  readonly inputs: Readonly<Record<string, StoredTensor>>;
  readonly outputs: Readonly<Record<string, StoredTensor>>;
}

/** Cases of a kind, each a node of the same graph. */
interface Group {
  readonly name: string;
  /** Files in base64, by what inputs' dims are: declared, or symbols. */
  readonly models: Readonly<Record<string, string>>;
  readonly cases: readonly Case[];
}

/** A graph of several nodes, run with sizes one after another. */
interface Chain {
  readonly name: string;
  readonly model: string;
  readonly runs: readonly {
    readonly sizes: Readonly<Record<string, number>>;
    readonly inputs: Readonly<Record<string, StoredTensor>>;
    readonly outputs: Readonly<Record<string, StoredTensor>>;
  }[];
}

const { groups, chains } = JSON.parse(
  await Deno.readTextFile(fixturePath("onnx_empty.json")),
) as { groups: readonly Group[]; chains: readonly Chain[] };

function tensorsOf(stored: readonly (readonly [string, StoredTensor])[]) {
  return Object.fromEntries(stored.map(([name, tensor]) => [name, tensorOf(tensor)]));
}

async function failures({ models, cases }: Group, device: DeviceName): Promise<string[]> {
  const failed: string[] = [];
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  for (const [dims, model] of Object.entries(models)) {
    await Deno.writeFile(path, Uint8Array.fromBase64(model));
    using graph = await loadGraph(path, { device, threads: 1 });
    const wanted = new Set(graph.inputs.map(({ name }) => name));
    const inputs = cases.flatMap(({ inputs }) => Object.entries(inputs))
      .filter(([name]) => wanted.has(name));
    const results = await graph.run(tensorsOf(inputs));
    for (const { name, outputs } of cases) {
      for (const [output, expected] of Object.entries(outputs)) {
        // A graph leaves out the cases that onnxruntime refuses in its form.
        const result = results[output] as GraphTensor | undefined;
        const reason = result && differingElement(result, expected, 1e-5);
        if (reason) failed.push(`${name}, ${dims}: ${reason}`);
      }
    }
  }
  await Deno.remove(path);
  return failed;
}

async function checkChain({ model, runs }: Chain, device: DeviceName): Promise<void> {
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  await Deno.writeFile(path, Uint8Array.fromBase64(model));
  using graph = await loadGraph(path, { device, threads: 1 });
  for (const { sizes, inputs, outputs } of runs) {
    const results = await graph.run(tensorsOf(Object.entries(inputs)));
    for (const [name, expected] of Object.entries(outputs)) {
      const reason = differingElement(results[name] as GraphTensor, expected, 1e-4);
      assertEquals(reason, undefined, `${name} with ${JSON.stringify(sizes)}`);
    }
  }
  await Deno.remove(path);
}

for (const device of ["reference", "wasm", "gpu"] as const) {
  for (const chain of chains) {
    testWith(
      device === "gpu" ? [adapterNeed] : [],
      `${chain.name} with sizes of 0 in between gives what onnxruntime gives on ${device}`,
      () => checkChain(chain, device),
    );
  }
  for (const group of groups) {
    testWith(
      device === "gpu" ? [adapterNeed] : [],
      `${group.name} of nothing give what onnxruntime gives on ${device}`,
      async () => {
        assertGreater(group.cases.length, 10);
        assertEquals(await failures(group, device), []);
      },
    );
  }
}

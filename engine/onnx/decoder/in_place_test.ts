// No step of a decoder copies a cache (spec TL-12): keys and values of the past are read by attention and by
// nothing else, and what a graph gives out of them are the new rows.

import { assertEquals } from "@std/assert";
import { type DecoderForm, writeDecoder } from "../../../tests/support/onnx_decoder.ts";
import { openOnnxFolder } from "../file/open_onnx_model.ts";
import { equal } from "../../graph/dim/mod.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { openDevice } from "../../run/devices.ts";
import { prepareDecoder } from "./prepare.ts";

/** What reads a value, reshapes looked through. */
function readersOf({ nodes }: Graph, value: Value): string[] {
  return nodes.filter(({ inputs }) => inputs.includes(value)).flatMap(({ op, outputs }) =>
    op === "reshape" ? readersOf({ nodes } as Graph, outputs[0]!) : [op]
  );
}

const FORMS: Readonly<Record<string, DecoderForm>> = {
  "heads first": {},
  "rows first": { layout: "rows first" },
  "keys and values that GroupQueryAttention appends": { mask: "counted" },
  "rows outermost": { layout: "rows outermost" },
};

for (const [name, form] of Object.entries(FORMS)) {
  Deno.test(`a step reads the caches of a decoder where they lie: ${name}`, async () => {
    const folder = await Deno.makeTempDir();
    try {
      await Deno.writeFile(`${folder}/model.onnx`, writeDecoder(form));
      const file = openOnnxFolder(folder)!;
      const device = await openDevice("wasm", { threads: 1 });
      const { stages } = await prepareDecoder(file, { options: { contextLength: 32 }, device });
      for (const { derived: { graph, ports, givesNewRows } } of stages) {
        for (const { name, present, axis } of ports.caches) {
          const past = graph.inputs.find((input) => input.name === name)!;
          assertEquals(readersOf(graph, past), ["attention"], name);
          assertEquals(givesNewRows(present), true, present);
          const rows = graph.outputs.filter((output) => output.shape.length === past.shape.length);
          assertEquals(rows.some(({ shape }) => equal(shape[axis]!, past.shape[axis]!)), false);
        }
      }
      file.close();
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

// Graphs in which other engines went wrong (tests/fixtures/public/pc-onnx-*), on every device: their operators' own
// rules say what comes out, or that nothing may.

import { assertEquals } from "@std/assert";
import type { DeviceName } from "../engine/run/backend.ts";
import { runCase } from "../tools/fixtures/case.ts";
import { reportCases } from "../tools/fixtures/public.ts";
import { fixturePath } from "./support/fixtures.ts";
import { adapterNeed } from "./support/gpu.ts";
import { testWith } from "./support/skip.ts";

const PUBLIC = fixturePath("public");
const FOLDERS = [...Deno.readDirSync(PUBLIC)].map(({ name }) => name)
  .filter((name) => name.startsWith("pc-onnx-")).sort();

async function failures(device: DeviceName): Promise<string[]> {
  const failed: string[] = [];
  for (const id of FOLDERS) {
    for await (const one of reportCases(`${PUBLIC}/${id}`, { device, full: false })) {
      const { name, outcome, reason } = await runCase(one);
      if (outcome !== "passed") failed.push(`${name}: ${reason}`);
    }
  }
  return failed;
}

for (const device of ["reference", "wasm", "gpu"] as const) {
  const needs = device === "gpu" ? [adapterNeed] : [];
  testWith(
    needs,
    `graphs of public bug reports do what their operators say on ${device}`,
    async () => {
      assertEquals([FOLDERS.length >= 11, await failures(device)], [true, []]);
    },
  );
}

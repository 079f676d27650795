// Files that are made from others are what these say (run: deno task build).

import { assertEquals } from "@std/assert";
import { specFiles } from "../engine/models/specs/mod.ts";
import { samplingSteps } from "../engine/decode/sampling/steps/mod.ts";
import { GENERATORS } from "../tools/build/generators.ts";
import { ROOT } from "../tools/support/task.ts";

for (const { name, files, stale } of GENERATORS) {
  Deno.test(`${files}: up to date (run: deno task build ${name})`, async () => {
    assertEquals(await stale(), []);
  });
}

Deno.test("docs have a row for every spec and every sampling step", () => {
  const lines = ["models", "sampling"].flatMap((name) =>
    Deno.readTextFileSync(`${ROOT}/docs/${name}.md`).split("\n")
  );
  const wanted = [
    ...specFiles.map(({ name }) => `/specs/${name}.json) `),
    ...[...samplingSteps.keys()].map((name) => `| \`${name}\``),
  ];
  assertEquals(wanted.filter((part) => !lines.some((line) => line.includes(part))), []);
});

function namesBelow(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) =>
    isDirectory ? namesBelow(`${folder}/${name}`) : [name]
  );
}

Deno.test("every file that is called generated is of a generator", () => {
  const folders = ["engine", "gpu", "quant", "wasm"].map((name) => `${ROOT}/${name}`);
  assertEquals(folders.flatMap(namesBelow).filter((name) => name.includes(".gen.")).sort(), [
    ...["kernels_baseline.gen.json", "kernels_relaxed.gen.json", "page.gen.json"],
    ...["strings.gen.json", "table.gen.json"],
  ]);
});

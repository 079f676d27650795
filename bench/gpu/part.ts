// One part of `deno task bench gpu` in a process of its own: figures as JSON lines.
//
// deno run -A bench/gpu/part.ts PART OPTIONS

import { type GpuBenchOptions, type Part, partFigures } from "./mod.ts";

const [part, options] = Deno.args;
for await (const figure of partFigures(part as Part, JSON.parse(options!) as GpuBenchOptions)) {
  console.log(JSON.stringify(figure));
}
Deno.exit(0);

// One part of `deno task bench gpu` in a process of its own: figures as JSON lines.
//
// deno run -A bench/gpu/part.ts PART OPTIONS

import { executableFigures } from "./executable_figures.ts";
import { generateFigures } from "./generate_figures.ts";
import type { Part, PartOptions } from "./mod.ts";

const [part, given] = Deno.args as [Part, string];
const options = JSON.parse(given) as PartOptions;
const figures = part === "generate" ? generateFigures(options) : executableFigures(part, options);
for await (const figure of figures) console.log(JSON.stringify(figure));
Deno.exit(0);

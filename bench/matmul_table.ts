// Matrix products at the shapes of SmolLM2-135M and Gemma 3 270M: GB/s of weights for one row (weights
// out of memory, beside a plain read in the same run), G operations/s for more rows (weights in cache).
// deno run -A bench/matmul_table.ts [--threads 1,2] [--exact]

import { createMachine } from "../wasm/machine.ts";
import { prepareProduct, prepareRead, type Product, shortest } from "./support/matmul.ts";

const SHAPES: readonly (readonly [format: string, outputs: number, columns: number])[] = [
  ["Q4_1", 576, 576],
  ["Q4_1", 192, 576],
  ["Q4_1", 1536, 576],
  ["Q4_1", 576, 1536],
  ["Q8_0", 49152, 576],
  ["Q5_0", 1024, 640],
  ["Q5_0", 2048, 640],
  ["Q8_0", 256, 640],
  ["Q4_K", 640, 1024],
  ["Q6_K", 640, 2048],
  ["Q8_0", 262144, 640],
  ["Q4_0", 2048, 2048],
  ["Q5_1", 2048, 2048],
  ["Q5_K", 2048, 2048],
];
const ROWS: readonly number[] = [2, 4, 8, 30, 128];

function threadCounts(): number[] {
  const at = Deno.args.indexOf("--threads");
  if (at >= 0) return Deno.args[at + 1]!.split(",").map(Number);
  return [...new Set([1, navigator.hardwareConcurrency])];
}

async function measure(threads: number, exact: boolean): Promise<void> {
  using machine = await createMachine({ threads });
  using read = prepareRead(machine);
  const limit = read.bytes / shortest(() => read.run(), 20) / 1e6;
  console.log(
    `\n${machine.threads} threads, ${machine.capabilities.simd}: read ${limit.toFixed(1)} GB/s`,
  );
  console.log("| weights | 1 row GB/s | of read |" + ROWS.map((r) => ` ${r} rows GOPS |`).join(""));
  console.log("|---|---|---|" + ROWS.map(() => "---|").join(""));
  for (const [format, outputs, columns] of SHAPES) {
    const product: Product = { format, rows: 1, outputs, columns, exact };
    const cells: string[] = [];
    {
      using one = await prepareProduct(machine, product, true);
      const speed = one.bytes / shortest(() => one.run(), 10) / 1e6;
      cells.push(speed.toFixed(1), `${(100 * speed / limit).toFixed(0)} %`);
    }
    for (const rows of ROWS) {
      const some = { ...product, rows, outputs: Math.min(outputs, 4096) };
      using many = await prepareProduct(machine, some, false);
      const repeat = Math.max(1, Math.round(2e8 / many.operations));
      const run = () => {
        for (let i = 0; i < repeat; i++) many.run();
      };
      cells.push((repeat * many.operations / shortest(run, 5) / 1e6).toFixed(0));
    }
    console.log(`| ${format} ${outputs}×${columns} | ${cells.join(" | ")} |`);
  }
}

if (import.meta.main) {
  const exact = Deno.args.includes("--exact");
  for (const threads of threadCounts()) await measure(threads, exact);
}

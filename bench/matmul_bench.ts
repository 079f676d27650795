// Matrix products of one row and of many, by format, weights in cache; Q8_0 is the baseline of each group.
// For GB/s out of memory and the machine's own limit: bench/matmul_table.ts.
// deno bench -A bench/matmul_bench.ts

import { hasIntegerKernel, laidOutFormats } from "../wasm/format_layouts.ts";
import { createMachine } from "../wasm/machine.ts";
import { prepareProduct } from "./support/matmul.ts";

const OUTPUTS = 512;
const COLUMNS = 1536;

const machine = await createMachine({ threads: 1 });

for (const rows of [1, 8, 128]) {
  for (const format of laidOutFormats()) {
    for (const exact of hasIntegerKernel(format) ? [false, true] : [true]) {
      const product = { format, rows, outputs: OUTPUTS, columns: COLUMNS, exact };
      const prepared = await prepareProduct(machine, product, false);
      Deno.bench({
        name: `${exact ? "matmul" : "matmul_q8"} ${format}`,
        group: `${rows} × ${COLUMNS} times ${OUTPUTS} rows, one thread`,
        baseline: format === "Q8_0" && !exact,
        fn: () => prepared.run(),
      });
    }
  }
}

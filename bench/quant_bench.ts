// Decoding of number formats by their scalar definitions: what a format costs where there is no kernel
// for it (conversion, the reference backend). F32, a copy, is the baseline.

import { formatBytes, formats } from "../quant/mod.ts";
import { createDraw } from "../tools/support/draw.ts";

const COUNT = 256 * 256;

for (const format of formats.values()) {
  if (COUNT % format.blockSize !== 0) continue;
  const draw = createDraw(1, COUNT);
  const bytes = Uint8Array.from({ length: formatBytes(format, COUNT) }, () => draw(256));
  const values = new Float32Array(COUNT);
  Deno.bench({
    name: `${format.name} (${COUNT} values)`,
    group: "decode",
    baseline: format.name === "F32",
    permissions: "none",
    fn: () => format.decode(bytes, values),
  });
}

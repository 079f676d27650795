// Writes a model in a smaller number format and says what that costs: the error of its weights beforehand, and
// its perplexity before and after. The policy is llama.cpp's Q4_K_M with a rule of our own in front.
//
//   deno run --allow-read --allow-env --allow-write=FOLDER examples/quantize.ts MODEL FOLDER/OUT.gguf TEXT

import { getPolicy, load, perplexity, quantError, quantize, type QuantPolicy } from "../mod.ts";

const [model, path, textPath] = Deno.args;
if (!model || !path || !textPath) throw new TypeError("Give MODEL OUT.gguf TEXT");
const text = await Deno.readTextFile(textPath);

const mixture = getPolicy("q4_k_m");
const policy: QuantPolicy = {
  ...mixture,
  name: "Q4_K_M, first layer in 8 bit",
  rules: [{ pattern: "^blk\\.0\\.", format: "q8_0" }, ...mixture.rules],
};

const { total, bits } = await quantError(model, { format: policy });
console.log(
  `${bits.toFixed(2)} bits a weight, error ${(total.relative * 100).toPrecision(3)} %`,
);

// With `calibration: { text, method: "gptq" }` it takes minutes, and loses less.
const { bytes, sourceBytes, tensors, warnings } = await quantize(model, path, { format: policy });
for (const warning of warnings) console.log(`warning: ${warning}`);
const standIns = tensors.filter(({ insteadOf }) => insteadOf).length;
console.log(`${sourceBytes} bytes became ${bytes}; ${standIns} tensors have a stand-in`);

for (const file of [model, path]) {
  using loaded = await load(file, { logitRows: 32 });
  const score = await perplexity(loaded, text, { window: 64, windows: 4 });
  console.log(`${score.perplexity.toFixed(3)} ± ${score.standardError.toFixed(3)}  ${file}`);
}

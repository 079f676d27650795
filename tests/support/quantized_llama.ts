// The wide Llama in a number format, as a file.

import { openModel } from "../../engine/models/open_model.ts";
import { planQuantization } from "../../engine/quantize/plan.ts";
import { quantizeModel } from "../../engine/quantize/quantize.ts";
import { getPolicy } from "../../quant/policies.ts";
import { wideLlama } from "./wide_llama.ts";

/** Writes the wide Llama in a format and hands its path over. */
export async function withQuantized<T>(
  format: string,
  body: (path: string) => Promise<T>,
): Promise<T> {
  const folder = await Deno.makeTempDir();
  try {
    const source = `${folder}/wide.gguf`;
    await Deno.writeFile(source, wideLlama());
    const file = await openModel(source);
    const policy = getPolicy(format);
    try {
      const path = `${folder}/out.${planQuantization(file, policy).container}`;
      await quantizeModel(file, { path, policy });
      return await body(path);
    } finally {
      file.close();
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

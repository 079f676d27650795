// One cold process: imports an engine, loads a model, and ends with the first token. Prints the milliseconds of the import
// and of loading.
//
//   deno run -A bench/start/first_token.ts ENGINE MODEL

const [engine = "", model] = Deno.args;
const start = performance.now();
const { generate, load } = await import(engine);
const imported = performance.now() - start;
let loading = 0;
if (model !== undefined) {
  const loaded = await load(model);
  loading = performance.now() - start - imported;
  for await (const _ of generate(loaded, "The sea is", { maxTokens: 1, temperature: 0 })) break;
}
Deno.stdout.writeSync(new TextEncoder().encode(`${imported} ${loading}\n`));
Deno.exit(0);

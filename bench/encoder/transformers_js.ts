// Peers of `deno task bench encoder`: transformers.js on native onnxruntime, as it runs under Deno, and its
// tokenizer with onnxruntime-web, whose WASM build is the other engine that JavaScript can load anywhere.
// Both get texts in batches padded to the longest, mean pooling and length 1, as our embed() does.
//
// deno run -A --no-lock --no-config --node-modules-dir=manual bench/encoder/transformers_js.ts \
//   PACKAGES MODELS native|web THREADS

import { createRequire } from "node:module";
import { type Engine, serve } from "../support/runner.ts";

/** The few names of the packages that are used here. */
interface Tensor {
  readonly data: BigInt64Array;
  readonly dims: readonly number[];
  normalize(p: number, dim: number): Tensor;
  tolist(): number[][];
}
type Encoded = Record<string, Tensor>;
type Model = (inputs: Encoded) => Promise<Record<string, Tensor>>;
interface Transformers {
  readonly env: { localModelPath: string; allowRemoteModels: boolean };
  readonly Tensor: new (type: string, data: unknown, dims: readonly number[]) => Tensor;
  readonly AutoTokenizer: {
    from_pretrained(
      name: string,
    ): Promise<(texts: readonly string[], options: Record<string, boolean>) => Encoded>;
  };
  readonly AutoModel: {
    from_pretrained(name: string, options: Record<string, unknown>): Promise<Model>;
  };
  mean_pooling(states: Tensor, mask: Tensor): Tensor;
}
interface OnnxRuntimeWeb {
  readonly env: { readonly wasm: { numThreads: number; wasmPaths: string } };
  readonly Tensor: new (type: string, data: unknown, dims: readonly number[]) => Tensor;
  readonly InferenceSession: {
    create(bytes: Uint8Array, options: Record<string, unknown>): Promise<{
      readonly inputNames: readonly string[];
      run(feeds: Encoded): Promise<Record<string, Tensor>>;
    }>;
  };
}

const NAME = "minilm";

async function webModel(
  packages: string,
  models: string,
  threads: number,
  { Tensor }: Transformers,
): Promise<Model> {
  // Its ES module fails in Deno with more than one thread.
  const ort = createRequire(`${packages}/bench.cjs`)("onnxruntime-web") as OnnxRuntimeWeb;
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = `file://${packages}/node_modules/onnxruntime-web/dist/`;
  const session = await ort.InferenceSession.create(
    await Deno.readFile(`${models}/${NAME}/onnx/model.onnx`),
    { executionProviders: ["wasm"], graphOptimizationLevel: "all" },
  );
  return async (inputs) => {
    const feeds = session.inputNames.map((name) =>
      [name, new ort.Tensor("int64", inputs[name]!.data, inputs[name]!.dims)] as const
    );
    const outputs = await session.run(Object.fromEntries(feeds));
    return Object.fromEntries(
      Object.entries(outputs).map(([name, { data, dims }]) =>
        [name, new Tensor("float32", data, dims)] as const
      ),
    );
  };
}

async function start(
  packages: string,
  models: string,
  kind: string,
  threads: number,
): Promise<Engine> {
  const library = await import(
    `file://${packages}/node_modules/@huggingface/transformers/dist/transformers.node.mjs`
  ) as Transformers;
  library.env.localModelPath = models;
  library.env.allowRemoteModels = false;
  const loadStart = performance.now();
  const tokenizer = await library.AutoTokenizer.from_pretrained(NAME);
  const model = kind === "web"
    ? await webModel(packages, models, threads, library)
    : await library.AutoModel.from_pretrained(NAME, {
      ...{ dtype: "fp32", device: "cpu" },
      session_options: { intraOpNumThreads: threads, interOpNumThreads: 1 },
    });
  return {
    loadMs: performance.now() - loadStart,
    embed: async (texts, batch) => {
      const start = performance.now();
      const vectors: number[][] = [];
      for (let at = 0; at < texts.length; at += batch) {
        const options = { padding: true, truncation: true };
        const inputs = tokenizer(texts.slice(at, at + batch), options);
        // The states of all tokens, whatever the exporter called them; some files have the pooled ones too.
        const outputs = Object.values(await model(inputs));
        const states = outputs.find(({ dims }) => dims.length === 3)!;
        const pooled = library.mean_pooling(states, inputs.attention_mask!).normalize(2, -1);
        vectors.push(...pooled.tolist());
      }
      return { ms: performance.now() - start, vector: vectors[0]! };
    },
    close: () => Promise.resolve(),
  };
}

if (import.meta.main) {
  const [packages, models, kind, threads] = Deno.args;
  await serve(await start(packages!, models!, kind!, Number(threads)));
  Deno.exit(0); // onnxruntime-web's workers would keep the process
}

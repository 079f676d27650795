// A project that uses the engine under Deno's own compiler options, as most users do: what compiles here only
// because of the repository's options fails the gate (`deno task ok`). It is checked, never run.

import { generate, load, loadGraph } from "../../mod.ts";

using model = await load("smollm2-135m");
const answer = generate(model, "The capital of France is", { maxTokens: 4 });
const graph = await loadGraph("model.onnx");
console.log(await answer.text(), graph.inputs.map(({ name }) => name));

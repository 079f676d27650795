// `troodon graph`: a picture of an ONNX graph as it is planned, and of its arena over time. Graphs are laid
// out by Graphviz (npm @viz-js/viz), which is named only here and only when this command draws: named in
// an import, Deno would fetch it, and all of deno.lock, for every command.

import { closing } from "../../byte_source.ts";
import { UnsupportedError } from "../../errors.ts";
import { writeNewText } from "../../io.ts";
import { type Command, defineCommand } from "../command.ts";
import { SOURCE_FLAGS } from "../flags.ts";
import { parseBind, refuseUnknownDims } from "./plan.ts";
import { importNamed } from "../../npm_packages.ts";

/** The command. */
export const graphCommand: Command = defineCommand({
  name: "troodon graph",
  summary: "Draws an ONNX graph as it is planned, and its memory over time.",
  positionals: ["MODEL"],
  flags: {
    ...SOURCE_FLAGS,
    bind: { type: "string", value: "NAME=N,…", help: "sizes of the symbols in input shapes" },
    format: {
      type: "string",
      choices: ["html", "svg", "dot", "arena"],
      help: "html: both pictures; svg: the graph; dot: the graph as text; arena: SVG (html)",
    },
    out: { type: "string", short: "o", value: "FILE", help: "where to write it (standard output)" },
  },
  examples: [
    ["troodon graph model.onnx --bind batch=1 --out model.html", "both pictures on a page"],
    ["troodon graph model.onnx --bind batch=1 --format dot", "for a layout program of your own"],
    ["troodon graph silero-vad --bind batch=1,samples=512 --out vad.html", "a model by its name"],
  ],
  notes: [
    "A graph that the host decides (control flow, trees, strings) is drawn as its file has it.",
    "html and svg fetch npm @viz-js/viz (Graphviz as WASM) on first use; dot and arena fetch nothing.",
  ],
}, async (context, { positionals: [file], flags }) => {
  const { terminal } = context;
  const { openNamedGraph } = await import("../named_graph.ts");
  const { planGraph, symbolsOfInputs } = await import("../../onnx/running/plan_graph.ts");
  const { AUTO_FOR_GRAPHS } = await import("../../run/device_facts.ts");
  const { openDevice } = await import("../../run/devices.ts");
  const { arenaSvg } = await import("../../onnx/running/draw_arena.ts");
  const { dotOfFile } = await import("../../onnx/running/draw_file.ts");
  const { dotOf, htmlOf } = await import("../../onnx/running/draw_graph.ts");
  const { model } = await openNamedGraph(file!, { flags, pick: context });
  using _model = closing(model);
  const device = await openDevice(AUTO_FOR_GRAPHS, {});
  const bind = parseBind(flags.bind);
  refuseUnknownDims(bind, symbolsOfInputs(model));
  const { plan, bindings, split } = planGraph(model, { bind, device });
  const { format = "html" } = flags;
  if (!plan && format === "arena") {
    throw new UnsupportedError("nothing is computed before the host has run", { file });
  }
  // A plan that ends before the graph does shows a part of it.
  const dot = () =>
    plan && split.length === 0
      ? dotOf(plan.graph, { env: bindings, hasKernel: device.hasKernel })
      : dotOfFile(model);
  const arena = plan && arenaSvg(plan);
  const text = format === "dot"
    ? dot()
    : format === "arena"
    ? arena!
    : format === "svg"
    ? await layOut(dot())
    : htmlOf(file, { graph: await layOut(dot()), arena });
  if (flags.out === undefined) terminal.out(text);
  else writeNewText(flags.out, text);
  return 0;
});

interface Viz {
  instance(): Promise<{ renderString(dot: string, options: { format: "svg" }): string }>;
}

const LAYOUT = "npm:@viz-js/viz@3.24.0";

async function layOut(dot: string): Promise<string> {
  let viz: Viz;
  try {
    viz = await importNamed<Viz>(LAYOUT);
  } catch (cause) {
    throw new UnsupportedError("cannot load npm @viz-js/viz, which lays out graphs", {
      remedy: "Allow the network once, or use --format dot",
      cause,
    });
  }
  const svg = (await viz.instance()).renderString(dot, { format: "svg" });
  // Without the XML prologue it can stand in a page.
  return svg.slice(svg.indexOf("<svg"));
}

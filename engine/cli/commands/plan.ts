// `troodon plan`: what ONNX graphs would take at given sizes, from their structure alone: steps, arena
// against its lower bound, a table of the ops with and without a kernel, graphs after each pass. Several files are planned
// one by one, and with one arena that they share. With --device gpu, dispatches (plan_gpu.ts).

import { closing } from "../../byte_source.ts";
import type { Graph } from "../../graph/graph.ts";
import type { OpRow } from "../../run/op_table.ts";
import type { BodyPlan } from "../../onnx/running/plan_bodies.ts";
import type { GraphPlan } from "../../onnx/running/plan_graph.ts";
import { UsageError } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";
import { PLACEMENT_FLAGS, placementOptions, SOURCE_FLAGS } from "../flags.ts";
import { paint, showBytes, showCount, showTable } from "../format.ts";

/** The command. */
export const planCommand: Command = defineCommand({
  name: "troodon plan",
  summary: "Shows what ONNX graphs would take: steps, memory, ops without a kernel.",
  positionals: ["MODEL…"],
  flags: {
    ...SOURCE_FLAGS,
    bind: { type: "string", value: "NAME=N,…", help: "sizes of the symbols in input shapes" },
    policy: {
      type: "string",
      choices: ["gbs", "shared", "literal", "naive"],
      help: "how the arena is laid out (gbs: greedy by size)",
    },
    alignment: { type: "integer", min: 1, help: "bytes that every offset is a multiple of (64)" },
    floats: {
      type: "string",
      choices: ["32", "16"],
      help: "bits of a float activation on the device that is planned for (32)",
    },
    steps: { type: "boolean", help: "list every step with shapes and place" },
    passes: { type: "boolean", help: "list the nodes after each pass" },
    device: {
      type: "string",
      choices: ["gpu"],
      help:
        "count the dispatches on it: of a language model's token by layer, of a graph by kernel",
    },
    context: {
      type: "integer",
      value: "N",
      min: 1,
      help: "with --device gpu or --placement: positions",
    },
    ...PLACEMENT_FLAGS,
    out: { type: "string", short: "o", value: "FILE", help: "with --placement: draw it as SVG" },
  },
  examples: [
    ["troodon plan decoder.onnx --bind N=128,sumN=1024", "a language model's prefill"],
    [
      "troodon plan unet.onnx vae.onnx --bind batch=1,H=64,W=64,N=77",
      "an arena that two nets share",
    ],
    ["troodon plan model.gguf --device gpu", "dispatches of a token, by layer"],
    ["troodon plan model.onnx --json", "everything, for a script"],
    ['troodon plan model.gguf --placement "0;1" --out plan.svg', "bytes a device, bytes a token"],
  ],
}, async (context, { positionals: files, flags }) => {
  const { terminal } = context;
  if (files.length === 0) throw new UsageError("troodon plan needs a file");
  const placement = placementOptions(flags);
  if (Object.keys(placement).length > 0) {
    const { planPlacement } = await import("../plan_placement.ts");
    const options = {
      ...placement,
      ...flags.device && { device: flags.device },
      ...flags.context && { contextLength: flags.context },
    };
    return await planPlacement({ terminal }, files, { options, json: flags.json, out: flags.out });
  }
  if (flags.device === "gpu") {
    const { policy, alignment, floats, passes } = flags;
    const given = Object.entries({ policy, alignment, floats, passes })
      .find(([, value]) => value !== undefined && value !== false);
    if (given) throw new UsageError(`--${given[0]} does not go with --device gpu`);
    const { planOnGpu } = await import("../plan_gpu.ts");
    const bind = flags.bind === undefined ? undefined : parseBind(flags.bind);
    return await planOnGpu({ terminal }, files, { ...flags, bind });
  }
  if (flags.out !== undefined) throw new UsageError("--out goes with --placement");
  if (flags.context !== undefined) {
    throw new UsageError("--context goes with --device gpu and --placement");
  }
  const { openNamedGraph } = await import("../named_graph.ts");
  const { planBodies } = await import("../../onnx/running/plan_bodies.ts");
  const { planGraph, symbolsOfInputs } = await import("../../onnx/running/plan_graph.ts");
  const { opTable } = await import("../../run/op_table.ts");
  const { AUTO_FOR_GRAPHS } = await import("../../run/device_facts.ts");
  const device = await (await import("../../run/devices.ts")).openDevice(AUTO_FOR_GRAPHS, {});
  const bind = parseBind(flags.bind);
  const planned: Planned[] = [];
  using opened = new DisposableStack();
  const models = [];
  for (const file of files) {
    const { model, read } = await openNamedGraph(file, { flags, pick: context });
    opened.use(closing(model));
    models.push({ file, model, own: symbolsOfInputs(model), read });
  }
  refuseUnknownDims(bind, new Set(models.flatMap(({ own }) => [...own])));
  for (const { file, model, own, read } of models) {
    const passes: { readonly name: string; readonly graph: Graph }[] = [];
    const options = {
      device,
      bind: Object.fromEntries(Object.entries(bind).filter(([name]) => own.has(name))),
      policy: flags.policy,
      alignment: flags.alignment,
      floatBytes: flags.floats === "16" ? 2 : 4,
    } as const;
    const onPass = (name: string, graph: Graph) => passes.push({ name, graph });
    const plan = planGraph(model, { ...options, onPass });
    const bodies = planBodies(model, options);
    const ops = plan.plan ? opTable(plan.plan, plan.bindings) : [];
    planned.push({ file, plan, ops, passes, bodies, read });
  }
  const colours = terminal.colours.out;
  if (flags.json) terminal.out(JSON.stringify(asJson(planned)) + "\n");
  else {
    const { formatPlan } = await import("../../plan/format_plan.ts");
    for (const one of planned) {
      terminal.out(asText(one, colours) + "\n");
      if (flags.passes) terminal.out(passesText(one) + "\n");
      if (flags.steps && one.plan.plan) terminal.out(formatPlan(one.plan.plan, one.plan.bindings));
    }
    if (planned.length > 1) terminal.out(sharedText(planned) + "\n");
  }
  return 0;
});

interface Planned {
  readonly file: string;
  readonly plan: GraphPlan;
  readonly ops: readonly OpRow[];
  readonly passes: readonly { readonly name: string; readonly graph: Graph }[];
  readonly bodies: readonly BodyPlan[];
  /** Milliseconds. */
  readonly read: number;
}

/** @throws {UsageError} If a size is given to what no input has. */
export function refuseUnknownDims(
  bind: Readonly<Record<string, number>>,
  names: ReadonlySet<string>,
): void {
  const unknown = Object.keys(bind).find((name) => !names.has(name));
  if (unknown === undefined) return;
  const known = [...names].join(", ") || "none";
  throw new UsageError(`--bind: no input has a dim named ${unknown}. There are: ${known}`);
}

/** `N=128,sumN=1024` as numbers. */
export function parseBind(text: string | undefined): Record<string, number> {
  const bind: Record<string, number> = {};
  for (const part of text?.split(",") ?? []) {
    const match = /^\s*(.+?)\s*=\s*(\d+)\s*$/.exec(part);
    if (!match || !Number.isSafeInteger(Number(match[2]))) {
      throw new UsageError(`--bind takes NAME=N pairs joined by commas, not "${part}"`);
    }
    bind[match[1]!] = Number(match[2]);
  }
  return bind;
}

function asText(
  { file, plan: { plan, ...rest }, ops, bodies, read }: Planned,
  colours: boolean,
): string {
  const rows: [string, string][] = [];
  const sizes = Object.entries(rest.bindings).map(([name, value]) => `${name} = ${value}`);
  if (sizes.length + rest.assumptions.length > 0) {
    rows.push(["sizes", [...sizes, ...rest.assumptions].join(", ")]);
  }
  rows.push(["nodes", `${rest.fileNodes} in the file`]);
  if (plan) {
    const { graph, steps, waves, arenaBytes, lowerBoundBytes, naiveBytes, policy } = plan;
    rows[rows.length - 1]![1] += `, ${graph.nodes.length} after passes, ` +
      `${steps.length} steps in ${waves} waves`;
    const saved = naiveBytes === 0 ? 0 : 100 * (1 - arenaBytes / naiveBytes);
    rows.push([
      "arena",
      `${showBytes(arenaBytes)} (${policy}), lower bound ${showBytes(lowerBoundBytes)}, ` +
      `one buffer each ${showBytes(naiveBytes)}, saved ${saved.toFixed(1)} %`,
    ]);
    rows.push(["weights", showBytes(weightBytes(graph))]);
  }
  if (rest.split.length > 0) rows.push(["split", rest.split.join("; ")]);
  for (const body of bodies) rows.push(["inside", bodyText(body)]);
  const { derive, plan: planning } = rest.times;
  rows.push([
    "time",
    `read ${read.toFixed(0)} ms, derive ${derive.toFixed(0)}, plan ${planning.toFixed(0)}`,
  ]);
  const table = ops.length > 0 ? `\n${opsText(ops)}` : "";
  return `${paint(colours, { style: "bold", text: file })}\n${showTable(rows)}${table}`;
}

function opsText(ops: readonly OpRow[]): string {
  const allBytes = ops.reduce((sum, { outputBytes }) => sum + outputBytes, 0);
  const allAdds = ops.reduce((sum, { multiplyAdds }) => sum + multiplyAdds, 0);
  const head = ["op", "steps", "kernel", "host", "results", "", "multiply-adds", ""];
  const rows = ops.map(({ op, count, onDevice, onHost, outputBytes, multiplyAdds }) => [
    op,
    String(count),
    String(onDevice),
    String(onHost),
    showBytes(outputBytes),
    share(outputBytes, allBytes),
    multiplyAdds > 0 ? showCount(multiplyAdds) : "",
    multiplyAdds > 0 ? share(multiplyAdds, allAdds) : "",
  ]);
  return showTable([head, ...rows], [1, 2, 3, 4, 5, 6, 7]);
}

function share(part: number, all: number): string {
  return all > 0 ? `${(100 * part / all).toFixed(1)} %` : "";
}

function passesText({ passes }: Planned): string {
  return passes.map(({ name, graph: { nodes } }) =>
    [
      `after ${name}: ${nodes.length} nodes`,
      ...nodes.map(({ op, name, inputs, outputs }) =>
        `  ${name}: ${op}(${inputs.map((value) => value?.name ?? "-").join(", ")}) -> ` +
        outputs.map((value) => value.name).join(", ")
      ),
    ].join("\n")
  ).join("\n");
}

/** `If(gate) then_branch: 3 nodes, 2 steps, arena 128 B`. */
function bodyText({ name, nodes, plan }: BodyPlan): string {
  const steps = plan?.plan
    ? `${plan.plan.steps.length} steps, arena ${showBytes(plan.plan.arenaBytes)}`
    : plan
    ? "computed on the host"
    : "sizes known in a run only";
  return `${name}: ${nodes} ${nodes === 1 ? "node" : "nodes"}, ${steps}`;
}

function sharedText(planned: readonly Planned[]): string {
  const arenas = planned.map(({ plan: { plan } }) => plan?.arenaBytes ?? 0);
  const naive = planned.reduce((sum, { plan: { plan } }) => sum + (plan?.naiveBytes ?? 0), 0);
  const sum = arenas.reduce((a, b) => a + b, 0);
  return `together: ${showBytes(sum)}; in one arena, used one after another ` +
    `${showBytes(Math.max(...arenas))}; one buffer each ${showBytes(naive)}`;
}

function weightBytes({ nodes }: Graph): number {
  const weights = new Set(
    nodes.flatMap(({ inputs }) => inputs.flatMap((value) => value?.tensor ?? [])),
  );
  return [...weights].reduce((sum, { byteLength }) => sum + byteLength, 0);
}

function asJson(planned: readonly Planned[]) {
  return planned.map(({ file, plan: { plan, ...rest }, ops, passes, bodies, read }) => ({
    file,
    readMs: read,
    ...rest,
    bodies: bodies.map(({ name, nodes, plan }) => ({
      name,
      nodes,
      steps: plan?.plan?.steps.length ?? null,
      arenaBytes: plan?.plan?.arenaBytes ?? null,
    })),
    ...plan && {
      nodes: plan.graph.nodes.length,
      steps: plan.steps.length,
      waves: plan.waves,
      arenaBytes: plan.arenaBytes,
      lowerBoundBytes: plan.lowerBoundBytes,
      naiveBytes: plan.naiveBytes,
      weightBytes: weightBytes(plan.graph),
      policy: plan.policy,
      alignment: plan.alignment,
      ops,
    },
    passes: passes.map(({ name, graph }) => ({ name, nodes: graph.nodes.length })),
  }));
}

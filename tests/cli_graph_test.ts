// `troodon plan` and `troodon graph`, as processes with the least permission, on models written here.

import { assert, assertEquals, assertFalse, assertMatch, assertStringIncludes } from "@std/assert";
import { ROOT } from "../tools/support/task.ts";
import { assertRefused, troodon } from "./support/cli.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { onnxSeeds } from "./support/fuzz_onnx.ts";
import { writeOnnx } from "./support/write_onnx.ts";

async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const names = ["chain", "control", "conv", "functions", "forest"];
    onnxSeeds().forEach((bytes, i) => Deno.writeFileSync(`${folder}/${names[i]}.onnx`, bytes));
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("plan needs to read the file and nothing else, and shows steps, arena and bound", () =>
  inFolder(async (folder) => {
    const file = `${folder}/chain.onnx`;
    const permissions = [`--allow-read=${folder}`];
    const text = await troodon(["plan", file, "--bind", "N=3,sumN=5"], { permissions });
    assertEquals([text.code, text.err], [0, ""]);
    assertMatch(text.out, /sizes +N = 3, sumN = 5/);
    assertMatch(text.out, /nodes +8 in the file, .*3 steps in \d waves/);
    assertMatch(text.out, /arena .*lower bound .*one buffer each .*saved/);
    assertMatch(text.out, /^op +steps +kernel +host +results +multiply-adds$/m);
    const json = await troodon(["plan", file, "--bind", "N=3,sumN=5", "--json"], { permissions });
    const [plan] = JSON.parse(json.out);
    assertEquals([plan.fileNodes, plan.steps, plan.split], [8, 3, []]);
    const ops = plan.ops as readonly Readonly<Record<string, number>>[];
    assertEquals(ops.reduce((sum, { count }) => sum + count!, 0), plan.steps);
    for (const row of ops) assertEquals(row.onDevice! + row.onHost!, row.count);
    assert(plan.lowerBoundBytes <= plan.arenaBytes && plan.arenaBytes <= plan.naiveBytes);
  }));

Deno.test("plan lists steps and passes, several files together, and where the host takes over", () =>
  inFolder(async (folder) => {
    const [chain, control] = [`${folder}/chain.onnx`, `${folder}/control.onnx`];
    const all = await troodon([
      "plan",
      chain,
      control,
      "--bind",
      "N=3,sumN=5,n=2",
      "--steps",
      "--passes",
    ]);
    assertEquals([all.code, all.err], [0, ""]);
    assertMatch(all.out, /after dead_code: \d+ nodes/);
    assertMatch(all.out, /plan of g: 3 steps in/);
    assertMatch(all.out, /split +If\(y\) \(If\) runs on the host; /);
    assertMatch(all.out, /inside +If\(If\(y\)\) then_branch: 1 node, 1 steps, arena /);
    assertMatch(all.out, /inside +Loop\(Loop\(last\)\) body: 3 nodes, /);
    assertMatch(all.out, /together: .* in one arena/);
  }));

Deno.test("plan says which symbols want a value, and refuses others", () =>
  inFolder(async (folder) => {
    const file = `${folder}/chain.onnx`;
    assertRefused(
      await troodon(["plan", file]),
      1,
      /no value for N, sumN\. .* --bind, e\.g\. N=1,sumN=1/,
    );
    for (const command of ["plan", "graph"]) {
      const bound = (bind: string) => troodon([command, file, "--bind", bind]);
      assertRefused(await bound("Q=1"), 2, /no input has a dim named Q. There are: N, sumN/);
      assertRefused(await bound("N=3,sunN=5"), 2, /named sunN. There are: N, sumN/);
    }
    assertRefused(await troodon(["plan", file, "--bind", "N"]), 2, /--bind takes NAME=N pairs/);
    assertRefused(await troodon(["plan", `${ROOT}/main.ts`]), 1, /main\.ts.*it is a text/);
  }));

Deno.test("plan, graph and run say what they are given instead, and what is for it", () =>
  inFolder(async (folder) => {
    for (const command of ["plan", "graph"]) {
      assertRefused(
        await troodon([command, TINY_LLAMA]),
        1,
        /is a GGUF file, not an ONNX graph.*plan it with troodon plan --device gpu or --placement/,
      );
    }
    const chain = `${folder}/chain.onnx`;
    assertRefused(
      await troodon(["plan", chain, "--placement", "0;1"]),
      1,
      /is an ONNX graph, .*no placement cuts it/,
    );
    assertRefused(await troodon(["run", chain]), 2, /a script runs a graph, by loadGraph\(\)/);
  }));

Deno.test("graph writes the graph as text and the arena as a picture without fetching anything", () =>
  inFolder(async (folder) => {
    const file = `${folder}/chain.onnx`;
    const permissions = [`--allow-read=${folder}`];
    const draw = (format: string) =>
      troodon(["graph", file, "--bind", "N=3,sumN=5", "--format", format], { permissions });
    const dot = await draw("dot");
    assertEquals([dot.code, dot.err], [0, ""]);
    assertMatch(dot.out, /^digraph "g" \{/);
    assertStringIncludes(dot.out, 'label="x\\nf32[3, 4]"');
    const arena = await draw("arena");
    assertMatch(arena.out, /^<svg [^]*<title>[^<]*: \d+ bytes at \d+, waves 0 to/);
  }));

Deno.test("info, plan and graph show a model whose trees run on the host", () =>
  inFolder(async (folder) => {
    const file = `${folder}/forest.onnx`;
    const permissions = [`--allow-read=${folder}`];
    const info = await troodon(["info", file], { permissions });
    assertEquals([info.code, info.err], [0, ""]);
    assertMatch(info.out, /operators +ai\.onnx 17, ai\.onnx\.ml 3/);
    assertMatch(info.out, /^ +x +f32\[N, 2\]$/m);
    assertMatch(info.out, /^ +label +string\[N\]$/m);
    assertMatch(info.out, /^ +ai\.onnx\.ml\.TreeEnsembleClassifier +1$/m);
    const json = JSON.parse((await troodon(["info", file, "--json"], { permissions })).out);
    assertEquals(json.graphs[0].ops, {
      "ai.onnx.ml.Scaler": 1,
      "ai.onnx.ml.TreeEnsembleClassifier": 1,
    });
    const plan = await troodon(["plan", file, "--bind", "N=3"], { permissions });
    assertEquals([plan.code, plan.err], [0, ""]);
    assertMatch(plan.out, /split +trees \(TreeEnsembleClassifier\) runs on the host/);
    const args = ["graph", file, "--bind", "N=3", "--format", "dot"];
    const dot = await troodon(args, { permissions });
    assertEquals([dot.code, dot.err], [0, ""]);
    assertStringIncludes(dot.out, 'label="TreeEnsembleClassifier\\ntrees"');
    assertMatch(dot.out, /n0 -> n1 \[label="s"\]/);
  }));

Deno.test("info warns of ops that are not served, in a graph that is no language model", () =>
  inFolder(async (folder) => {
    const file = `${folder}/other.onnx`;
    const graph = {
      inputs: [["x", 1, [2]]] as const,
      outputs: [["y", 1, [2]]] as const,
      nodes: [{ op: "Conv3000", name: "odd", inputs: ["x"], outputs: ["y"] }],
    };
    Deno.writeFileSync(file, writeOnnx(graph));
    const { code, out } = await troodon(["info", file]);
    assertEquals(code, 0);
    assertMatch(out, /warning: .*Conv3000 at odd: the op is not supported/);
  }));

Deno.test("no command names a package in its code: it is fetched by who needs it, when it is needed", async () => {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", `${ROOT}/main.ts`],
    stdout: "piped",
  });
  const { stdout } = await command.output();
  interface Module {
    readonly specifier: string;
    readonly dependencies?: readonly { readonly code?: { readonly specifier: string } }[];
  }
  const { modules } = JSON.parse(new TextDecoder().decode(stdout)) as {
    readonly modules: readonly Module[];
  };
  assert(modules.length > 100);
  // Types of packages are nothing that runs, and are not fetched by who runs.
  const code = modules.flatMap(({ dependencies = [] }) =>
    dependencies.flatMap(({ code }) => code ? [code.specifier] : [])
  );
  assert(code.length > 100);
  assertFalse(code.some((specifier) => specifier.startsWith("npm:")));
});

Deno.test("a picture has axes, names and a legend, boxes around bodies and functions, and a page a search", () =>
  inFolder(async (folder) => {
    const draw = async (name: string, ...flags: string[]) => {
      const { code, out, err } = await troodon(["graph", `${folder}/${name}.onnx`, ...flags]);
      assertEquals([code, err], [0, ""]);
      return out;
    };
    const arena = await draw("chain", "--bind", "N=300,sumN=500", "--format", "arena");
    for (
      const text of [
        ">wave (time)<",
        ">place in the arena<",
        "lower bound: what lives at once",
        " B</text>",
      ]
    ) {
      assertStringIncludes(arena, text);
    }
    const control = await draw("control", "--bind", "n=2", "--format", "dot");
    for (
      const label of ["If If(y): then_branch", "If If(y): else_branch", "Loop Loop(last): body"]
    ) {
      assertStringIncludes(control, `label="${label}"`);
    }
    // No edge stands inside a box.
    for (const [, inside] of control.matchAll(/subgraph [^{]*{([^}]*)}/g)) {
      assertFalse(inside!.includes("->"));
    }
    const { htmlOf } = await import("../engine/onnx/running/draw_graph.ts");
    const page = htmlOf("<model>", { graph: "<svg></svg>", arena });
    for (
      const text of [
        "&lt;model&gt;",
        'type="search"',
        "computed by a kernel",
        "g.node, svg g.tensor",
      ]
    ) {
      assertStringIncludes(page, text);
    }
  }));

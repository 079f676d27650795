// What examples/deploy holds, checked for form where it cannot be run: metrics that the dashboard names exist, flags that
// container and unit give are those of the command, and packages have the versions that serving imports.

import { assert, assertEquals } from "@std/assert";
import { npmPackages } from "../engine/npm_packages.ts";
import { ROOT } from "../tools/support/task.ts";
import { troodon } from "./support/cli.ts";
import { testServer } from "./support/http_server.ts";

const read = (name: string) => Deno.readTextFileSync(`${ROOT}/examples/deploy/${name}`);

/** Metrics of a server that has answered. */
async function metricNames(): Promise<{ readonly names: Set<string>; readonly text: string }> {
  const { ask } = await testServer();
  const body = { model: "m", messages: [{ role: "user", content: "hi" }], stream: true };
  await (await ask("/v1/chat/completions", body)).text();
  await ask("/v1/chat/completions", { ...body, model: "unknown" });
  await ask("/v1/models/m");
  const text = await (await ask("/metrics")).text();
  return { names: new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name!)), text };
}

Deno.test("what happens is in the metrics: the engine's figures and what HTTP saw", async () => {
  const { text } = await metricNames();
  const values = Object.fromEntries(
    [...text.matchAll(/^(\w+(?:\{[^}]*\})?) ([\d.e+-]+)$/gm)].map((
      [, name, value],
    ) => [name, Number(value)]),
  );
  const wanted = {
    'troodon_answers_running{model="m"}': 1,
    'troodon_answers_waiting{model="m"}': 2,
    'troodon_steps_total{model="m"}': 10,
    'troodon_step_rows_total{model="m"}': 35,
    'troodon_cache_rows{model="m"}': 64,
    'troodon_cache_capacity_rows{model="m"}': 4096,
    'troodon_draft_tokens_accepted_total{model="m"}': 6,
    "troodon_engine_busy_seconds_total": 1.5,
    'troodon_first_token_seconds_count{model="m"}': 1,
    'troodon_between_tokens_seconds_count{model="m"}': 9,
    'troodon_tokens_per_second_sum{model="m"}': 50,
    'troodon_answers_total{model="m",reason="eos"}': 1,
    'troodon_http_requests_total{route="/v1/chat/completions",method="POST",status="200"}': 1,
    'troodon_http_requests_total{route="/v1/chat/completions",method="POST",status="404"}': 1,
    'troodon_http_requests_total{route="/v1/models/:name",method="GET",status="200"}': 1,
  };
  for (const [name, value] of Object.entries(wanted)) assertEquals(values[name], value, name);
  assertEquals(text.includes("unknown"), false, "a label that a client chose");
});

Deno.test("every metric that the dashboard names exists, and every metric has a panel", async () => {
  const { names } = await metricNames();
  const { panels } = JSON.parse(read("grafana.json"));
  const used = new Set<string>();
  for (const { title, targets } of panels) {
    for (const { expr } of targets) {
      for (const [name] of (expr as string).matchAll(/troodon_\w+/g)) {
        const base = name.replace(/_(bucket|sum|count)$/, "");
        assert(names.has(name) || names.has(base), `${title}: ${name}`);
        used.add(names.has(name) ? name : base);
      }
    }
  }
  const idle = [...names].filter((name) => !used.has(name));
  assertEquals(idle, [], "without a panel");
});

/** Flags of `troodon serve` in a command line. */
const flagsIn = (line: string) =>
  [...line.slice(line.indexOf("serve")).matchAll(/(?<![\w-])--[a-z-]+/g)].map(([flag]) => flag);

Deno.test("container and unit start the command with flags that it has, and let it drain", async () => {
  const { out } = await troodon(["serve", "--help"]);
  const unit = read("troodon.service"), docker = read("Dockerfile");
  const start = /^ExecStart=(.*)$/m.exec(unit)![1]!;
  const entry = /^ENTRYPOINT (.*)$/m.exec(docker)![1]!;
  for (const flag of [...flagsIn(start), ...flagsIn(JSON.parse(entry).join(" "))]) {
    assert(out.includes(flag), `${flag} is no flag of serve`);
  }
  const seconds = (pattern: RegExp) => Number(pattern.exec(unit)![1]);
  assert(
    seconds(/^TimeoutStopSec=(\d+)$/m) > seconds(/--drain (\d+)/),
    "it is killed while draining",
  );
  for (const section of ["Unit", "Service", "Install"]) {
    assert(unit.includes(`[${section}]\n`), section);
  }
  for (const line of unit.split("\n")) {
    assert(/^(#.*|\[\w+\]|[A-Z]\w+=.+|)$/.test(line), `no line of a unit: ${line}`);
  }
});

Deno.test("the container has what serving imports, in its versions, and files that are there", () => {
  const docker = read("Dockerfile");
  const config = JSON.parse(Deno.readTextFileSync(`${ROOT}/deno.json`));
  for (const [specifier] of docker.matchAll(/npm:(?:@[\w-]+\/)?[\w-]+@[\d.]+/g)) {
    assert(npmPackages().includes(specifier!), specifier);
  }
  assertEquals(config.imports.hono, /npm:hono@[\d.]+/.exec(docker)![0]);
  for (const [, sources] of docker.matchAll(/^COPY (.*) \S+$/gm)) {
    for (const path of sources!.split(" ")) assert(Deno.statSync(`${ROOT}/${path}`), path);
  }
  for (const instruction of ["FROM", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT"]) {
    assert(new RegExp(`^${instruction} `, "m").test(docker), instruction);
  }
});

Deno.test("compose starts front and workers with flags that they have, and lets them drain", async () => {
  const compose = read("compose.yaml");
  const services = Object.fromEntries(
    [...compose.matchAll(/^ {2}(\w+):\n((?: {4}.*\n)+)/gm)].map((
      [, name, text],
    ) => [name, text!]),
  );
  assertEquals(Object.keys(services), ["queue", "front", "worker"]);
  for (const [name, command] of [["front", "serve"], ["worker", "worker"]] as const) {
    const { out } = await troodon([command, "--help"]);
    const [, line] = /^ {4}command: (.*)$/m.exec(services[name]!)!;
    const flags = (JSON.parse(line!) as string[]).filter((one) => one.startsWith("--"));
    assert(flags.includes("--nats"));
    for (const flag of flags) assert(out.includes(`${flag} `), `${flag} is no flag of ${command}`);
    const [grace, drain] = [/stop_grace_period: (\d+)s/, /"--drain", "(\d+)"/].map((pattern) =>
      Number(pattern.exec(services[name]!)![1])
    );
    assert(grace! > drain!, `${name} is killed while draining`);
  }
  const [, entry] = /^ENTRYPOINT (.*)$/m.exec(read("Dockerfile"))!;
  const [, own] = /^ {4}entrypoint: (\[[^\]]*\])/m.exec(services.worker!)!;
  const until = (words: string[]) => words.slice(0, words.indexOf("main.ts") + 1);
  assertEquals(until(JSON.parse(own!.replace(/,\s*\]/, "]"))), until(JSON.parse(entry!)));
});

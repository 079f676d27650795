// `troodon peer`: computes parts of a model for another process, on this machine or another one (place/peer/serve.ts).

import { UsageError } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";

const LOOPBACK = ["127.0.0.1", "localhost", "::1"];

/** The command. */
export const peerCommand: Command = defineCommand({
  name: "troodon peer",
  summary: "Computes layers of a model for another process, which names it in --placement.",
  positionals: ["[MODEL]"],
  flags: {
    device: {
      type: "string",
      choices: ["auto", "wasm", "gpu", "reference"],
      help: "where to compute (auto)",
    },
    threads: { type: "integer", min: 1, max: 256, help: "CPU threads (all)" },
    listen: { type: "string", value: "HOST:PORT", help: "where to wait (127.0.0.1, any port)" },
    once: { type: "boolean", help: "end when the first one has gone" },
  },
  examples: [
    ["TROODON_PEER_KEY=secret troodon peer model.gguf --listen 0.0.0.0:7000", "on one machine"],
    [
      'TROODON_PEER_KEY=secret troodon generate model.gguf --placement "gpu;10.0.0.2:7000"',
      "on the other",
    ],
  ],
  notes: [
    "Both sides need the same TROODON_PEER_KEY and, beyond one machine, the same model. The key proves who asks; what " +
    "is sent is not encrypted. Permissions: --allow-read of the model, --allow-net, --allow-env.",
  ],
}, async ({ terminal, signal }, { positionals: [model], flags }) => {
  const { readEnv } = await import("../../io.ts");
  const { hostname, port } = readAddress(flags.listen ?? "127.0.0.1:0");
  const key = readEnv("TROODON_PEER_KEY");
  if (!key) throw new UsageError("troodon peer needs a key in TROODON_PEER_KEY");
  if (!model && !LOOPBACK.includes(hostname)) {
    throw new UsageError("troodon peer needs a MODEL to compute for other machines");
  }
  const { openDevice } = await import("../../run/devices.ts");
  const { listen } = await import("../../place/peer/sockets.ts");
  const { servePeer } = await import("../../place/peer/serve.ts");
  const { planForPeer } = await import("../../models/peer_plan.ts");
  const options = { threads: flags.threads };
  using listener = listen({ hostname, port });
  terminal.out(`troodon peer: listening on ${hostname}:${listener.port}\n`);
  signal.addEventListener("abort", () => listener[Symbol.dispose]());
  for await (const connection of listener.connections()) {
    const device = await openDevice(flags.device ?? "auto", { ...options, together: true });
    const served = servePeer(connection, {
      ...{ device, key },
      plan: (path, load) => planForPeer(model ?? path, load),
    });
    try {
      await served;
    } catch (error) {
      terminal.err(`troodon peer: ${(error as Error).message}\n`);
    }
    if (flags.once) break;
  }
  return 0;
});

function readAddress(text: string): { readonly hostname: string; readonly port: number } {
  const [, hostname, port] = /^\[?(.+?)\]?:(\d{1,5})$/.exec(text) ?? [];
  if (hostname === undefined || Number(port) > 65535) {
    throw new UsageError(`--listen takes HOST:PORT, not "${text}"`);
  }
  return { hostname, port: Number(port) };
}

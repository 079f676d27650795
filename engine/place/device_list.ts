// Opens the devices of a placement by their names (device_name.ts).

import { DeviceError } from "../errors.ts";
import { readEnv } from "../io.ts";
import type { Backend, DeviceName } from "../run/backend.ts";
import { DEVICE_FACTS } from "../run/device_facts.ts";
import { type Device, type DeviceOptions, hasGpu, openDevice } from "../run/devices.ts";
import type { Connection } from "./peer/channel.ts";
import { LOCAL_DEVICE } from "./device_name.ts";
import type { Member } from "./placed_device.ts";

/** What opens devices; the model's own options among them are those that peers are told. */
export interface MemberOptions extends DeviceOptions {
  /** What peers must know; default: TROODON_PEER_KEY of the environment. */
  readonly peerKey?: string | undefined;
  /** Steps that may be under way at once; 1: cards are this process's. */
  readonly lanes?: number | undefined;
}

/**
 * Opens the devices of a placement, in order.
 *
 * @throws {DeviceError} If one is not there.
 */
export async function openMembers(
  names: readonly string[],
  options: MemberOptions,
): Promise<Member[]> {
  const opening = names.map((name) => openMember(name, options));
  const opened = await Promise.allSettled(opening);
  const failed = opened.find(({ status }) => status === "rejected");
  const members = opened.flatMap((one) => one.status === "fulfilled" ? one.value : []);
  if (!failed) return members;
  for (const { peer } of members) peer?.close();
  throw (failed as PromiseRejectedResult).reason;
}

async function openMember(name: string, options: MemberOptions): Promise<Member> {
  const [, spawned, kind, digits] = LOCAL_DEVICE.exec(name) ?? [];
  if (!kind) return await openPeer(name, options);
  if (spawned) return await spawnMember(name, { kind, options, env: {} });
  if (kind === "gpu" && digits) return await openCard(name, Number(digits), options);
  return { name, device: await openHere(kind as DeviceName, options) };
}

/** A device of this process. */
function openHere(kind: DeviceName, options: MemberOptions): Promise<Device> {
  // Budgets are those of the placement, which loads all parts.
  return openDevice(kind, {
    ...options,
    together: true,
    maxHostBytes: undefined,
    stream: undefined,
  });
}

/**
 * Those of a placement's devices in this machine that it does not have. Peers are not asked.
 *
 * @param names As {@linkcode openMembers} takes them.
 */
export async function missingDevices(
  names: readonly string[],
  options: DeviceOptions,
): Promise<string[]> {
  const indexOf = (name: string) => /^gpu(\d+)$/.exec(name)?.[1];
  if (!names.some((name) => indexOf(name) !== undefined)) return [];
  const { graphicsCards } = await import("./cards.ts");
  const count = await hasGpu(options) ? Math.max(1, graphicsCards().length) : 0;
  return names.filter((name) => Number(indexOf(name) ?? -1) >= count);
}

/**
 * A card of the machine. Where there are several, each has a process of its own, because a run holds up its process; with
 * one step at a time all of them are this one's.
 */
async function openCard(name: string, index: number, options: MemberOptions): Promise<Member> {
  const { cardProvider, cardVariables, graphicsCards } = await import("./cards.ts");
  const cards = graphicsCards();
  if (index >= Math.max(1, cards.length) || !await hasGpu(options)) {
    throw new DeviceError(`device ${name} is not there: this machine shows ${cards.length} GPUs`, {
      remedy: "Name the devices that there are, such as wasm;gpu",
    });
  }
  if (cards.length < 2) return { name, device: await openHere("gpu", options) };
  const card = cards[index]!;
  if (options.lanes !== 1) {
    return await spawnMember(name, { kind: "gpu", options, env: cardVariables(card) });
  }
  const { builtIn } = await import("../../gpu/gpu.ts");
  const gpu = cardProvider(card, (options.gpu ?? builtIn())!);
  return { name, device: await openHere("gpu", { ...options, gpu }) };
}

async function spawnMember(
  name: string,
  { kind, options, env }: {
    readonly kind: string;
    readonly options: MemberOptions;
    readonly env: Readonly<Record<string, string>>;
  },
): Promise<Member> {
  const { connectTo, spawnPeer } = await import("./peer/sockets.ts");
  const key = crypto.getRandomValues(new Uint8Array(16)).toHex();
  return await linked(name, {
    ...{ options, key },
    async connect() {
      const process = await spawnPeer({ device: kind, key, env });
      try {
        const connection = await connectTo(process.address);
        return {
          read: (target) => connection.read(target),
          write: (bytes) => connection.write(bytes),
          close() {
            process[Symbol.dispose]();
            connection.close();
          },
        };
      } catch (error) {
        process[Symbol.dispose]();
        throw error;
      }
    },
  });
}

async function openPeer(name: string, options: MemberOptions): Promise<Member> {
  const { connectTo } = await import("./peer/sockets.ts");
  const key = options.peerKey ?? readEnv("TROODON_PEER_KEY");
  if (!key) {
    throw new DeviceError(`peer ${name} wants a key`, {
      remedy: "Set peerKey, or TROODON_PEER_KEY with --allow-env, as on the peer",
    });
  }
  return await linked(name, { options, key, connect: () => connectTo(name) });
}

/** What a model's plan depends on. */
const PLANNING = [
  ...["precision", "contextLength", "sessions", "cacheTokens", "batch", "logitRows", "kvFormat"],
  ...["embeddings", "words", "kvHeads", "adapters", "spec"],
];

async function linked(
  name: string,
  { options, key, connect }: {
    readonly options: MemberOptions;
    readonly key: string;
    readonly connect: () => Promise<Connection>;
  },
): Promise<Member> {
  const { linkPeer } = await import("./peer/link.ts");
  const load = Object.fromEntries(
    Object.entries(options).filter(([name]) => PLANNING.includes(name)),
  );
  const peer = await linkPeer({ name, key, connect, load });
  const backend: Backend = {
    ...{ name: "gpu", kernels: {} },
    prepare: () => Promise.reject(new TypeError(`peer ${name} makes its parts ready itself`)),
  };
  const none = () => false;
  return {
    ...{ name, peer },
    device: {
      ...{ ...DEVICE_FACTS.gpu, backend, hasKernel: none, takes: none },
      computesAny: () => Promise.resolve(true),
    },
  };
}

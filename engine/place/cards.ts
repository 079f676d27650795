// The machine's graphics cards. Deno shows one of them, which Mesa's device-select layer chooses by variables of the
// environment: those of another process, or this one's while it asks for an adapter. One of the files that touch the system.

import type { GpuProvider } from "../../gpu/capabilities.ts";
import { ResourceError } from "../errors.ts";
import { readEnv } from "../io.ts";

const BUS = "/sys/bus/pci/devices";
/** NVIDIA's driver names the cards that this container has; the bus shows all of the machine. */
const NVIDIA = "/proc/driver/nvidia/gpus";
/** Classes of devices on the bus: accelerators without a screen count before cards with one, such as a board's own. */
const CLASSES = [/^0x0302/, /^0x0300/];

/**
 * Addresses of the machine's graphics cards on its bus, as Mesa's DRI_PRIME takes them, in order; those of TROODON_GPUS
 * where that is set.
 */
export function graphicsCards(): string[] {
  const given = readEnv("TROODON_GPUS");
  if (given) return given.split(",").map((one) => one.trim());
  const cards = namesIn(NVIDIA);
  const found = cards.length > 0 ? cards : CLASSES.map(ofClass).find((own) => own.length > 0);
  return (found ?? []).map((name) => `pci-${name.toLowerCase().replace(/[:.]/g, "_")}`);
}

function ofClass(pattern: RegExp): string[] {
  return namesIn(BUS).filter((name) => {
    try {
      return pattern.test(Deno.readTextFileSync(`${BUS}/${name}/class`));
    } catch {
      return false;
    }
  });
}

function namesIn(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
  } catch {
    return [];
  }
}

/**
 * Variables with which a process takes the card at an address. All cards stay visible: where the layer shows one alone (an
 * address with `!` behind it), NVIDIA's driver refused buffers of 256 MB on one of two cards.
 */
export function cardVariables(address: string): Readonly<Record<string, string>> {
  return { DRI_PRIME: address };
}

/** Providers of cards in this process, by who shows them. One is asked at a time: variables are those of all. */
const opened = {
  providers: new WeakMap<GpuProvider, Map<string, GpuProvider>>(),
  asking: Promise.resolve() as Promise<unknown>,
};

/**
 * Gives this process adapters of the card at an address.
 *
 * @param shown Who gives the adapter that the variables choose.
 */
export function cardProvider(address: string, shown: GpuProvider): GpuProvider {
  const cards = opened.providers.get(shown) ?? new Map<string, GpuProvider>();
  opened.providers.set(shown, cards);
  const card = cards.get(address) ?? {
    ...shown.wgslLanguageFeatures && { wgslLanguageFeatures: shown.wgslLanguageFeatures },
    requestAdapter(options) {
      const ask = () => withVariables(cardVariables(address), () => shown.requestAdapter(options));
      const asked = opened.asking.then(ask, ask);
      opened.asking = asked;
      return asked;
    },
  };
  cards.set(address, card);
  return card;
}

/** Does something while variables of the environment have other values. @throws {ResourceError} If they may not be set. */
async function withVariables<T>(
  values: Readonly<Record<string, string>>,
  action: () => Promise<T>,
): Promise<T> {
  const set = (name: string, value: string | undefined) =>
    value === undefined ? Deno.env.delete(name) : Deno.env.set(name, value);
  try {
    const before = Object.keys(values).map((name) => [name, Deno.env.get(name)] as const);
    for (const [name, value] of Object.entries(values)) set(name, value);
    try {
      return await action();
    } finally {
      for (const [name, value] of before) set(name, value);
    }
  } catch (cause) {
    if (!(cause instanceof Deno.errors.NotCapable)) throw cause;
    throw new ResourceError("a card cannot be chosen in this process: it may not set variables", {
      remedy: "Run with --allow-env, or with more than one of lanes",
      cause,
    });
  }
}

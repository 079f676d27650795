// How placements are written. Inferflow's words for several devices (spec IF-18): `;` or `,` stands between groups that
// share the layers, `&` or `|` between the devices of a group, which share each layer's heads and channels:
//
//   0 · 0;1 · 0&1 · 0&1;2&3        numbers of the list of devices
//   wasm=10;gpu                    their names, and how many layers a group has; the others share the rest
//
// The JSON form says it node by node: `{"devices": ["wasm", "gpu"], "place": {"*": 0, "layers.8-29": 1}}`; see rules.ts
// for what stands on the left. A name of rules.ts's presets is a placement too.

/** Devices that share layers evenly, or have so many. */
export interface DeviceGroup {
  /** Names or numbers, as they are written. */
  readonly devices: readonly string[];
  /** Absent: an even share of what others leave. */
  readonly layers?: number;
}

/**
 * Reads the text form.
 *
 * @throws {RangeError} If it is none, groups are of unequal size, or a device stands there twice.
 */
export function parseGroups(text: string): DeviceGroup[] {
  const fail = (why: string) => new RangeError(`Cannot use placement "${text}": ${why}`);
  const groups = text.split(/[;,]/).map((part): DeviceGroup => {
    const [, list, layers] = /^([^=]*)(?:=(\d+))?$/.exec(part.trim()) ?? [];
    const devices = list?.split(/[&|]/).map((name) => name.trim()) ?? [];
    if (devices.length === 0 || devices.some((name) => !/^[\w.:[\]-]+$/.test(name))) {
      throw fail(
        `"${part.trim()}" is no group of devices; groups are like 0, 0&1 or gpu=12, with ";" between them`,
      );
    }
    return { devices, ...layers !== undefined && { layers: Number(layers) } };
  });
  const sizes = new Set(groups.map(({ devices }) => devices.length));
  if (sizes.size > 1) {
    throw fail(
      `groups must have as many devices each, and they have ${
        groups.map(({ devices }) => devices.length).join(" and ")
      }`,
    );
  }
  const names = groups.flatMap(({ devices }) => devices);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw fail(`device ${twice} stands there twice`);
  return groups;
}

/**
 * The layers of each group, from one up to another: what does not divide evenly goes to the groups in front.
 *
 * @throws {RangeError} If there are fewer layers than groups, or the given numbers are not those of the model; beside groups with
 * a number, others may have none.
 */
export function layerRanges(
  groups: readonly DeviceGroup[],
  layers: number,
): (readonly [from: number, to: number])[] {
  const given = groups.reduce((sum, group) => sum + (group.layers ?? 0), 0);
  const open = groups.filter((group) => group.layers === undefined).length;
  const rest = layers - given;
  const needed = open === groups.length ? open : 0;
  if (rest < needed || (open === 0 && rest !== 0)) {
    throw new RangeError(
      given > 0
        ? `Cannot place the model: it has ${layers} layers, and the placement gives out ${given}`
        : `Cannot place ${layers} layers on ${groups.length} groups of devices: each needs one`,
    );
  }
  let from = 0, seen = 0;
  return groups.map((group) => {
    const own = group.layers ?? Math.floor(rest / open) + (seen++ < rest % open ? 1 : 0);
    return [from, from += own] as const;
  });
}

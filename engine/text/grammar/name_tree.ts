// Names of an object's members as a tree of their bytes as JSON writes them.

import type { NameTree } from "./expression.ts";

/** The tree of some texts, which are all different; names are numbered in the order given here. */
export function createNameTree(texts: readonly string[]): { tree: NameTree; order: number[] } {
  const encoder = new TextEncoder();
  const bytes = texts.map((text) => encoder.encode(text));
  const order = texts.map((_, i) => i).sort((a, b) => compare(bytes[a]!, bytes[b]!));
  const most = bytes.reduce((sum, one) => sum + one.length, 1);
  const column = () => new Int32Array(most);
  const tree = {
    ...{ child: column(), sibling: column(), byte: new Uint8Array(most) },
    ...{ first: column(), end: column(), name: column().fill(-1), count: texts.length },
  };
  const latest = column(); // by node, its last child so far
  let size = 1;
  let path = [0];
  let before = new Uint8Array(0);
  for (const [name, index] of order.entries()) {
    const own = bytes[index]!;
    let alike = 0;
    while (alike < own.length && alike < before.length && own[alike] === before[alike]) alike++;
    path = path.slice(0, alike + 1);
    for (let at = alike; at < own.length; at++) {
      const parent = path[at]!;
      const node = size++;
      if (latest[parent] === 0) tree.child[parent] = node;
      else tree.sibling[latest[parent]!] = node;
      latest[parent] = node;
      tree.byte[node] = own[at]!;
      tree.first[node] = name;
      path.push(node);
    }
    for (const node of path) tree.end[node] = name + 1;
    tree.name[path.at(-1)!] = name;
    before = own;
  }
  return { tree, order };
}

function compare(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

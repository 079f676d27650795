// Numbers as strings and back, as onnxruntime's Cast writes and reads them: floats as C's %.8g.

import { getElement, hostArray, type HostTensor, setElement } from "../../../ops/host_tensor.ts";
import type { DataType } from "../../../graph/graph.ts";
import type { StringTensor } from "../../derivation/tensor.ts";

/** Every number written out. */
export function writeNumbers(tensor: HostTensor): StringTensor {
  const { dtype, shape, data } = tensor;
  const write = dtype.startsWith("f") || dtype === "bf16"
    ? (i: number) => general(getElement(tensor, i))
    : (i: number) => `${data[i]}`;
  return { dtype: "string", shape, data: Array.from({ length: data.length }, (_, i) => write(i)) };
}

const DIGITS = 8;

/** So many digits, without zeros at the end, and with an exponent where the point would be far away. */
function general(x: number): string {
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "INF" : "-INF";
  const sign = Object.is(x, -0) ? "-" : "";
  const [mantissa, exponent] = x.toExponential(DIGITS - 1).split("e") as [string, string];
  const power = Number(exponent);
  const trimmed = (text: string) => text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  if (power >= -4 && power < DIGITS) return sign + trimmed(x.toFixed(DIGITS - 1 - power));
  const size = `${Math.abs(power)}`.padStart(2, "0");
  return `${trimmed(mantissa)}e${power < 0 ? "-" : "+"}${size}`;
}

/** Every string read as a number. @throws {RangeError} If one is none. */
export function readNumbers({ shape, data }: StringTensor, dtype: DataType): HostTensor {
  const tensor = { dtype, shape, data: hostArray(dtype, { count: data.length }) };
  data.forEach((text, index) => {
    if (tensor.data instanceof BigInt64Array || tensor.data instanceof BigUint64Array) {
      if (!/^\s*[+-]?\d+\s*$/.test(text)) throw new RangeError(`"${text}" is no whole number`);
      tensor.data[index] = BigInt(text.trim().replace(/^\+/, ""));
      return;
    }
    const plain = text.trim().replace(/^([+-]?)inf(inity)?$/i, "$1Infinity");
    const value = Number(plain);
    if (plain === "" || Number.isNaN(value) && !/^[+-]?nan$/i.test(plain)) {
      throw new RangeError(`"${text}" is no number`);
    }
    setElement(tensor, { index, value });
  });
  return tensor;
}

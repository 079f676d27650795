// Subgroup matrices on any adapter with float16, as vectors of which each invocation has its part. So kernels
// that are chosen on a few real cards alone are held to the reference everywhere. Text is rewritten by the spelling of
// gpu/kernels: matrices of 16 × 16, memory that is an array of a module's variable.
//
// Subgroups are said to have 32 lanes, as those of cards with matrices do. They have fewer on Mesa's software adapter, so
// only kernels that shuffle among neighbours compute right there. Right matrices are loaded by columns alone: by rows they
// come as zeros on NVIDIA's cards, from vectors of halves in workgroup memory.

import type { GpuProvider } from "../../gpu/capabilities.ts";

const FEATURE = "chromium-experimental-subgroup-matrix";
const TYPE = "subgroup_matrix_(\\w+)<f\\d+, 16, 16>";
const CONFIG = { componentType: "f16", resultComponentType: "f32", M: 16, N: 16, K: 16 };

/**
 * This runtime's WebGPU with subgroup matrices; `areWrong`: sums have the wrong sign; `isSmall`: workgroups have no more memory
 * than the standard promises, for which tiles are small and soon compiled.
 */
export function matrixProvider({ areWrong = false, isSmall = false } = {}): GpuProvider {
  const { gpu } = navigator as Navigator & { readonly gpu: GpuProvider };
  return {
    wgslLanguageFeatures: gpu.wgslLanguageFeatures!,
    async requestAdapter(options) {
      const adapter = (await gpu.requestAdapter(options))!;
      const { description, device, vendor, architecture } = adapter.info;
      const info = { description, device, vendor, architecture, isFallbackAdapter: true };
      const sizes = { subgroupMinSize: 32, subgroupMaxSize: 32, subgroupMatrixConfigs: [CONFIG] };
      const features = new Set([...adapter.features as Set<string>, FEATURE]);
      const request = async (wanted: GPUDeviceDescriptor) => {
        const listed = [...wanted.requiredFeatures ?? []] as string[];
        const requiredFeatures = listed.filter((name) => name !== FEATURE) as GPUFeatureName[];
        const device = await adapter.requestDevice({ ...wanted, requiredFeatures });
        return withMatrices(device, areWrong);
      };
      const least: Record<string, number> = isSmall
        ? { maxComputeWorkgroupStorageSize: 16384 }
        : {};
      const limits = new Proxy(adapter.limits, {
        get: (all, name) => least[name as string] ?? Reflect.get(all, name, all),
      });
      return { info: { ...info, ...sizes }, features, limits, requestDevice: request } as never;
    },
  };
}

function withMatrices(device: GPUDevice, areWrong: boolean): GPUDevice {
  const create = device.createShaderModule.bind(device);
  return Object.defineProperties(device, {
    features: { value: new Set([...device.features as Set<string>, FEATURE]) },
    createShaderModule: {
      value: (descriptor: GPUShaderModuleDescriptor) =>
        create({ ...descriptor, code: emulated(descriptor.code, areWrong ? "-=" : "+=") }),
    },
  });
}

/**
 * A module without subgroup matrices. An invocation has a row of the left matrix and eight columns of the result and of the right
 * one, which has a place for each load in the text.
 *
 * @throws {TypeError} If it uses subgroups that it has not enabled, as Dawn asks.
 */
function emulated(code: string, sums: string): string {
  if (/\bsubgroup(?!Matrix)[A-Z]/.test(code) && !code.includes("enable subgroups;")) {
    throw new TypeError("subgroups are not enabled");
  }
  const plain = code.replace(/^(enable (subgroups|chromium\w+)|diagnostic\(.*\));\n/gm, "");
  if (!code.includes("subgroupMatrix")) return plain;
  const declared = plain.matchAll(
    /var<(workgroup|storage, \w+)> (\w+): array<(vec4<)?(f16|f32)>?[,>]/g,
  );
  const memories = [...declared].map(([, space, name, vector, type]): Memory => ({
    ...{ name: name!, type: type!, isVector: vector !== undefined },
    isWritten: space !== "storage, read",
  }));
  const lane = /@builtin\(local_invocation_index\) (\w+): u32,\n\) \{/;
  const load = new RegExp(`subgroupMatrixLoad<${TYPE}, (\\w+)_major>\\(&(\\w+),`, "g");
  let places = 0;
  return [
    plain
      .replace(lane, (head, name) => `${head}\n  matrix_lane = ${name} % 32u;`)
      .replace(
        load,
        (_, side, order, name) =>
          `load_${name}_${side}_${order}(${side === "right" ? `${places++}u, ` : ""}`,
      )
      .replace(/subgroupMatrixStore<row_major>\(&(\w+),/g, "store_$1(")
      .replaceAll("subgroupMatrixMultiplyAccumulate", "multiply_matrices")
      .replaceAll("subgroupMatrixScalarMultiply", "scale_matrix")
      .replace(new RegExp(TYPE, "g"), "Matrix_$1")
      .replace(/bitcast<vec([24])<f16>>/g, "halves_of_$1"), // naga takes halves in casts for floats
    "var<private> matrix_lane: u32;",
    "struct Matrix_left { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }",
    // Nothing, which compilers do not know: loops that they write out take minutes.
    "fn opaque() -> u32 { return matrix_lane >> 5u; }",
    "struct Matrix_right { place: u32 }",
    `var<private> rights: array<array<vec4<f32>, 32>, ${Math.max(1, places)}>;`,
    "struct Matrix_result { a: vec4<f32>, b: vec4<f32> }",
    "fn scale_matrix(sum: Matrix_result, by: f32) -> Matrix_result {",
    "  return Matrix_result(sum.a * by, sum.b * by);",
    "}",
    "fn halves_of_2(bits: u32) -> vec2<f16> { return vec2<f16>(unpack2x16float(bits)); }",
    "fn halves_of_4(bits: vec2<u32>) -> vec4<f16> {",
    "  return vec4<f16>(halves_of_2(bits.x), halves_of_2(bits.y));",
    "}",
    ...memories.map(accessOf),
    `fn multiply_matrices(
      left: Matrix_left, right: Matrix_right, sum: Matrix_result,
    ) -> Matrix_result {
      var a = sum.a; var b = sum.b;
      for (var k = 0u; k < 16u + opaque(); k++) {
        let quad = select(select(left.d, left.c, k < 12u), select(left.b, left.a, k < 4u), k < 8u);
        a ${sums} quad[k % 4u] * rights[right.place][2u * k];
        b ${sums} quad[k % 4u] * rights[right.place][2u * k + 1u];
      }
      return Matrix_result(a, b);
    }`,
    ...memories.map(loadsOf),
  ].join("\n");
}

/** An array in which matrices may lie. */
interface Memory {
  readonly name: string;
  readonly type: string;
  /** Whether its elements are four. */
  readonly isVector: boolean;
  readonly isWritten: boolean;
}

function accessOf({ name, type, isVector, isWritten }: Memory): string {
  const element = isVector ? `${name}[at / 4u][at % 4u]` : `${name}[at]`;
  const write = `fn write_${name}(at: u32, value: f32) { ${element} = ${type}(value); }`;
  return `fn read_${name}(at: u32) -> f32 { return f32(${element}); }\n${isWritten ? write : ""}`;
}

function loadsOf({ name, isVector, isWritten }: Memory): string {
  const width = isVector ? 4 : 1, numbers = [0, 1, 2, 3];
  const quad = (at: string) =>
    `vec4<f32>(${numbers.map((i) => `read_${name}(${at} + ${i}u)`).join()})`;
  const place = `${width}u * (offset + matrix_lane / 2u * stride)`;
  const own = `${place} + matrix_lane % 2u * 8u`;
  const store = [..."ab"].flatMap((half, i) =>
    numbers.map((c) => `write_${name}(at + ${4 * i + c}u, value.${half}[${c}]);`)
  );
  return `
    fn load_${name}_left_row(offset: u32, stride: u32) -> Matrix_left {
      let at = ${place};
      return Matrix_left(${numbers.map((i) => quad(`at + ${4 * i}u`)).join()});
    }
    fn load_${name}_right_col(place: u32, offset: u32, stride: u32) -> Matrix_right {
      let first = ${width}u * (offset + matrix_lane % 2u * 8u * stride);
      for (var i = 0u; i < 32u + opaque(); i++) {
        let at = first + i / 2u + i % 2u * 4u * ${width}u * stride;
        rights[place][i] = vec4<f32>(${
    numbers.map((c) => `read_${name}(at + ${c * width}u * stride)`).join()
  });
      }
      return Matrix_right(place);
    }
    fn load_${name}_result_row(offset: u32, stride: u32) -> Matrix_result {
      let at = ${own};
      return Matrix_result(${quad("at")}, ${quad("at + 4u")});
    }
    ${
    isWritten
      ? `fn store_${name}(offset: u32, value: Matrix_result, stride: u32) {
      let at = ${own};
      ${store.join("\n")}
    }`
      : ""
  }`;
}

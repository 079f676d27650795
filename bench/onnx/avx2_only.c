// Answers `cpuid` for a copy of onnxruntime in which every `cpuid` has become `ud2` (avx2_only.py), without AVX-512, VNNI in
// any width, AMX and AVX10: processors before Zen 5 and most virtual machines cannot hide features themselves. What is asked
// once chooses the kernels; nothing afterwards is slower. Preloaded; Linux on x86-64.

#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <ucontext.h>

// Leaf 7, subleaf 0: AVX-512 F, DQ, IFMA, PF, ER, CD, BW, VL | VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ | 4VNNIW, 4FMAPS,
// VP2INTERSECT, AMX-BF16, AVX-512 FP16, AMX-TILE, AMX-INT8. Subleaf 1: AVX-VNNI, AVX-512 BF16, AMX-FP16, AVX-IFMA |
// AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10.
enum { EBX_7 = 0xdc230000, ECX_7 = 0x00005842, EDX_7 = 0x03c0010c };
enum { EAX_7_1 = 0x00a00030, EDX_7_1 = 0x00080530 };

static void answer(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const unsigned char *code = (const unsigned char *)registers[REG_RIP];
  if (code[0] != 0x0f || code[1] != 0x0b) {
    signal(number, SIG_DFL);
    return;
  }
  unsigned leaf = registers[REG_RAX], subleaf = registers[REG_RCX], a, b, c, d;
  __cpuid_count(leaf, subleaf, a, b, c, d);
  if (leaf == 7 && subleaf == 0) b &= ~EBX_7, c &= ~ECX_7, d &= ~EDX_7;
  if (leaf == 7 && subleaf == 1) a &= ~EAX_7_1, d &= ~EDX_7_1;
  registers[REG_RAX] = a, registers[REG_RBX] = b, registers[REG_RCX] = c, registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void start(void) {
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
  sigaction(SIGILL, &action, 0);
}

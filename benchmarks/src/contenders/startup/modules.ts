/** What it takes to load a module, and how large it is in a bundle. */
import { brotliCompressSync, gzipSync } from "node:zlib"
import { build } from "esbuild"
import type { Workload } from "../../Contender.ts"

interface Loading {
  readonly module: string
}

/** From the first byte read to the last statement run; the process is fresh, the system's file cache is not. */
export const load: Workload<Loading> = async ({ module }, meter) => {
  const began = performance.now()
  await import(module)
  meter.figure("import, ms", performance.now() - began)
  meter.tick()
}

/** Of everything that the module exports, minified, with what it imports. */
export const bundle: Workload<Loading> = async ({ module }, meter) => {
  const { outputFiles } = await build({
    stdin: { contents: `export * from ${JSON.stringify(module)}`, resolveDir: import.meta.dirname },
    bundle: true,
    minify: true,
    write: false,
    platform: "node",
    format: "esm"
  })
  const code = outputFiles[0]!.contents
  meter.figure("minified, kB", code.length / 1000)
  meter.figure("gzip, kB", gzipSync(code).length / 1000)
  meter.figure("brotli, kB", brotliCompressSync(code).length / 1000)
  meter.tick()
}
